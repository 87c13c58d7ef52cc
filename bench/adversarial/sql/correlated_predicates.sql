-- Returns flats in quiet streets that are cheap, cheap again, and large.
SELECT flat, price, rooms
FROM flats
JOIN streets ON flats.street = streets.street
WHERE is_cheap(price) AND is_cheap(value) AND is_large(rooms) AND noise < 5
