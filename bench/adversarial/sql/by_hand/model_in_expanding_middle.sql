-- From both ends to the middle; the model looks at what the senders have left.
SELECT /*+ BROADCAST(known) */ kind, count(*) AS ways, sum(weight) AS weight
FROM (
    SELECT /*+ BROADCAST(senders) */ place, weight
    FROM outgoing
    JOIN senders ON outgoing.sender = senders.sender
    WHERE name < 20 AND is_heavy(weight)
) AS known
JOIN (
    SELECT /*+ BROADCAST(receivers) */ place, kind
    FROM incoming
    JOIN receivers ON incoming.receiver = receivers.receiver
    WHERE kind < 2
) AS ends ON known.place = ends.place
GROUP BY kind
