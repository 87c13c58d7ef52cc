"""What is never paid twice: answers that are kept, whatever ends the application that asks."""
