-- Returns how senders of some names reach receivers of some kind.
SELECT kind, count(*) AS ways, sum(weight) AS weight
FROM outgoing
JOIN incoming ON outgoing.place = incoming.place
JOIN senders ON outgoing.sender = senders.sender
JOIN receivers ON incoming.receiver = receivers.receiver
WHERE is_known(name) AND kind < 2
GROUP BY kind
