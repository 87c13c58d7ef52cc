"""What is asked at the driver, once for the whole job: lookups and slow functions."""
