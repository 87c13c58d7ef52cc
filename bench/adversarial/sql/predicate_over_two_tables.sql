-- Returns offers and wishes in one town that suit each other.
SELECT wish, offers.thing, price, budget
FROM offers
JOIN wishes ON offers.thing = wishes.thing
JOIN owners ON offers.owner = owners.owner
WHERE suits(price, budget) AND town = 11
