"""Pictures of the package's objects, with a module for each kind of object."""
