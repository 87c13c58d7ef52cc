-- Returns the flights of large aircraft in strong wind that a model takes for late.
SELECT airlines.name AS airline, airports.name AS destination,
       count(*) AS flights, avg(dep_delay) AS minutes_late
FROM flights
JOIN planes ON flights.tailnum = planes.tailnum
JOIN weather ON flights.origin = weather.origin AND flights.time_hour = weather.time_hour
JOIN airports ON flights.dest = airports.faa
JOIN airlines ON flights.carrier = airlines.carrier
WHERE is_late_for_its_way(dep_delay, distance) AND seats > 300 AND wind_speed > 15
GROUP BY airlines.name, airports.name
