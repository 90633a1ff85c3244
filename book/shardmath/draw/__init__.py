"""Pictures and live figures. They import all the rest, and nothing imports them."""
