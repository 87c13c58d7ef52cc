-- Each half has the predicate first that is selective there, and the other behind a barrier.
SELECT trip, speed, load
FROM (
    SELECT /*+ BROADCAST(drivers), BROADCAST(cars) */ trip, speed, load, limit, most
    FROM trips
    JOIN drivers ON trips.driver = drivers.driver
    JOIN cars ON trips.car = cars.car
    WHERE is_below(if(trip < :half, load, speed), if(trip < :half, most, limit))
)
WHERE is_below(if(trip < :half, speed, load), if(trip < :half, limit, most))
