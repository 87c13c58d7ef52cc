-- Returns the triangles of which two sides agree.
SELECT knows.a, likes.b, trusts.c
FROM knows
JOIN likes ON knows.b = likes.b
JOIN trusts ON likes.c = trusts.c AND trusts.a = knows.a
WHERE agree(years, much)
