-- Whether anything came since the present sleep began.
SELECT EXISTS (SELECT 1 FROM wake_events WHERE session IS NULL AND waited = 0) AS news
