-- The model looks at triangles, of which there are few.
SELECT /*+ BROADCAST(likes), BROADCAST(trusts) */ knows.a, likes.b, trusts.c
FROM knows
JOIN likes ON knows.b = likes.b
JOIN trusts ON likes.c = trusts.c AND trusts.a = knows.a
WHERE agree(years, much)
