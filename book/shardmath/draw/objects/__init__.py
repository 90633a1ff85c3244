"""Pictures of the package's own objects, a module for each kind of object."""
