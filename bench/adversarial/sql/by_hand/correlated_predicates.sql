-- Quiet streets, then the two predicates that do something, and last the one that does nothing.
SELECT flat, price, rooms
FROM (
    SELECT *
    FROM (
        SELECT /*+ BROADCAST(streets) */ flat, price, value, rooms
        FROM flats
        JOIN streets ON flats.street = streets.street
        WHERE noise < 5 AND is_cheap(price)
    )
    WHERE is_large(rooms)
)
WHERE is_cheap(value)
