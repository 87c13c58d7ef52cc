-- Returns what was measured at the events of the newest devices.
SELECT events.device, value
FROM measurements
JOIN events ON measurements.second = events.second
JOIN devices ON events.device = devices.device
WHERE age = 0
