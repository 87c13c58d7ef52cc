-- The devices first, then the model; what is left is broadcast to the measurements.
SELECT /*+ BROADCAST(kept) */ kept.device, value
FROM (
    SELECT /*+ BROADCAST(devices) */ events.device, second
    FROM events
    JOIN devices ON events.device = devices.device
    WHERE age = 0 AND is_serious(code)
) AS kept
JOIN measurements ON measurements.second = kept.second
