-- Returns the votes for answers to questions that a model understands.
SELECT day, count(*) AS answers, sum(votes) AS votes
FROM trickling_answers
JOIN questions ON trickling_answers.question = questions.question
WHERE is_understood(words)
GROUP BY day
