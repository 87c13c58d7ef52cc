-- From both ends to the middle.
SELECT /*+ BROADCAST(known) */ kind, count(*) AS ways, sum(weight) AS weight
FROM (
    SELECT /*+ BROADCAST(chosen) */ place, weight
    FROM outgoing
    JOIN (SELECT sender FROM senders WHERE is_known(name)) AS chosen
      ON outgoing.sender = chosen.sender
) AS known
JOIN (
    SELECT /*+ BROADCAST(receivers) */ place, kind
    FROM incoming
    JOIN receivers ON incoming.receiver = receivers.receiver
    WHERE kind < 2
) AS ends ON known.place = ends.place
GROUP BY kind
