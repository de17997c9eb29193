"""What a day or a month of traffic asks for, in units, by the names of measured paths and of prices."""
