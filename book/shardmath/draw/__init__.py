"""Pictures and live figures. They may import the other packages, but not vice versa."""
