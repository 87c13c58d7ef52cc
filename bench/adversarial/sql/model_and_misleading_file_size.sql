-- Returns what was measured at the serious events of the newest devices.
SELECT events.device, value
FROM measurements
JOIN events ON measurements.second = events.second
JOIN devices ON events.device = devices.device
WHERE age = 0 AND is_serious(code)
