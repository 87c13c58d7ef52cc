-- Returns the trips on which driver and car kept their limits.
SELECT trip, speed, load
FROM trips
JOIN drivers ON trips.driver = drivers.driver
JOIN cars ON trips.car = cars.car
WHERE is_below(speed, limit) AND is_below(load, most)
