-- Statements over tiny tables, as people try things out and as tests of SQL are written.
-- A comment before a statement is its name; the group it belongs to stands before the colon.

-- select list: one function
SELECT id, plus_one(id) AS next FROM people;

-- select list: a text to clean
SELECT id, tidy(name) AS name FROM people;

-- select list: two functions
SELECT tidy(name) AS name, plus_one(age) AS age FROM people;

-- select list: a function of a function
SELECT id, tidy(tidy(name)) AS name FROM people;

-- select list: the same function twice
SELECT plus_one(id) AS a, plus_one(id) * 2 AS b FROM people;

-- select list: ordered
SELECT id, tidy(name) AS name FROM people ORDER BY id;

-- select list: limited
SELECT id, tidy(name) AS name FROM people LIMIT 3;

-- select list: of a file
SELECT number, plus_one(number) AS next FROM numbers;

-- filter: one predicate
SELECT id, name FROM people WHERE is_even(id);

-- filter: two predicates
SELECT id, name FROM people WHERE is_even(id) AND is_short(name);

-- filter: either of two
SELECT id, name FROM people WHERE is_even(id) OR is_short(name);

-- filter: a value compared
SELECT id FROM people WHERE plus_one(age) > 30;

-- filter: native beside it
SELECT id FROM people WHERE age > 20 AND is_even(id);

-- filter: and in the select list
SELECT tidy(name) AS name FROM people WHERE is_even(id);

-- filter: in a subquery
SELECT count(*) AS n FROM (SELECT id FROM people WHERE is_short(name)) WHERE id > 2;

-- filter: of a file
SELECT number FROM numbers WHERE is_even(number) AND is_even(half);

-- filter: nothing is left
SELECT id FROM people WHERE is_even(id) AND plus_one(id) < 0;

-- aggregate: of a value
SELECT sum(plus_one(age)) AS total FROM people;

-- aggregate: by a value
SELECT tidy(city) AS city, count(*) AS n FROM people GROUP BY tidy(city);

-- aggregate: with HAVING
SELECT city, count(*) AS n FROM people GROUP BY city HAVING plus_one(count(*)) > 2;

-- aggregate: of what a predicate keeps
SELECT city, max(age) AS oldest FROM people WHERE is_even(id) GROUP BY city;

-- aggregate: distinct
SELECT DISTINCT tidy(city) AS city FROM people;

-- aggregate: over a join
SELECT p.city, sum(plus_one(o.amount)) AS total
FROM people p JOIN orders o ON p.id = o.person GROUP BY p.city;

-- aggregate: window
SELECT id, rank() OVER (PARTITION BY tidy(city) ORDER BY age) AS place FROM people;

-- join: a predicate on one side
SELECT p.name, o.amount FROM people p JOIN orders o ON p.id = o.person WHERE is_short(p.name);

-- join: a predicate on each side
SELECT p.name, o.amount FROM people p JOIN orders o ON p.id = o.person
WHERE is_short(p.name) AND is_even(o.amount);

-- join: a predicate over both
SELECT p.name, o.amount FROM people p JOIN orders o ON p.id = o.person
WHERE plus_one(p.age + o.amount) > 60;

-- join: on a value
SELECT p.name, c.country FROM people p JOIN cities c ON tidy(p.city) = c.name;

-- join: three tables
SELECT p.name, o.amount, c.country
FROM people p JOIN orders o ON p.id = o.person JOIN cities c ON p.city = c.name
WHERE is_even(o.amount);

-- join: a value in the select list
SELECT tidy(p.name) AS name, o.amount FROM people p JOIN orders o ON p.id = o.person;

-- join: with itself
SELECT a.name, b.name AS other FROM people a JOIN people b ON a.city = b.city AND a.id < b.id
WHERE is_short(a.name);

-- join: outer
SELECT p.name, o.amount FROM people p LEFT JOIN orders o ON p.id = o.person WHERE is_short(p.name);

-- join: of files
SELECT n.number, h.number AS double FROM numbers n JOIN numbers h ON n.number = h.half
WHERE is_even(n.number);

-- join: without an equality
SELECT p.name, o.amount FROM people p JOIN orders o ON p.age > o.amount WHERE is_even(p.id);

-- subquery: IN
SELECT name FROM people WHERE id IN (SELECT person FROM orders WHERE is_even(amount));

-- subquery: EXISTS
SELECT name FROM people p
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id AND is_even(o.amount));

-- subquery: NOT EXISTS
SELECT name FROM people p
WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id) AND is_even(p.id);

-- subquery: one value
SELECT name FROM people WHERE age = (SELECT max(age) FROM people WHERE is_even(id));

-- subquery: union
SELECT id FROM people WHERE is_even(id) UNION ALL SELECT person FROM orders WHERE is_even(amount);

-- subquery: common table expression
WITH even AS (SELECT id, city FROM people WHERE is_even(id))
SELECT a.id, b.id AS other FROM even a JOIN even b ON a.city = b.city;
