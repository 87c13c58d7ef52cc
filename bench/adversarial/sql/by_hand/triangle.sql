-- What goes through the hub closes on its other side first: in that order neither part explodes.
SELECT /*+ BROADCAST(trusts), BROADCAST(likes) */ knows.a, likes.b, trusts.c
FROM knows
JOIN trusts ON trusts.a = knows.a
JOIN likes ON knows.b = likes.b AND likes.c = trusts.c
WHERE knows.b = 0
UNION ALL
SELECT /*+ BROADCAST(likes), BROADCAST(trusts) */ knows.a, likes.b, trusts.c
FROM knows
JOIN likes ON knows.b = likes.b
JOIN trusts ON likes.c = trusts.c AND trusts.a = knows.a
WHERE knows.b <> 0
