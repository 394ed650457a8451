UPDATE inference_totals
SET answers = answers + 1, prompt_tokens = prompt_tokens + ?1, cached_tokens = cached_tokens + ?2,
    completion_tokens = completion_tokens + ?3, cost_microcents = cost_microcents + ?4,
    estimated = estimated + ?5
