SELECT max(0, coalesce(sum(-amount), 0) - (SELECT cost_microcents FROM inference_totals)) AS most
FROM ledger
WHERE category = 'inference'
