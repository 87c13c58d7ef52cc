-- The questions are looked at first and broadcast to the answers as these come.
SELECT /*+ BROADCAST(understood) */ day, count(*) AS answers, sum(votes) AS votes
FROM trickling_answers
JOIN (
    SELECT question, day FROM questions WHERE is_understood(words)
) AS understood ON trickling_answers.question = understood.question
GROUP BY day
