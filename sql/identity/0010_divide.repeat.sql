-- Run until it returns 0, each time in a transaction of its own.
SELECT divide_next(2000);
