-- The newest devices and their events are broadcast to the measurements.
SELECT /*+ BROADCAST(asked) */ asked.device, value
FROM (
    SELECT /*+ BROADCAST(devices) */ events.device, second
    FROM events
    JOIN devices ON events.device = devices.device
    WHERE age = 0
) AS asked
JOIN measurements ON measurements.second = asked.second
