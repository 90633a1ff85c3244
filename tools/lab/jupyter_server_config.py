"""Keeps JupyterLab from changing a notebook of this book when it is only opened.

JupyterLab writes the name and the language of its kernel into the notebook, and then
asks whether to save it. The book's notebooks hold fixed values instead, because these
would differ between readers' versions of Python. So a notebook is opened with the
kernel's values, and saved with the fixed ones.
"""

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import get_kernel_dict
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

STORED = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SEEN = {
    "kernelspec": STORED["kernelspec"]
    | {"display_name": get_kernel_dict()["display_name"]},
    "language_info": IPythonKernel.language_info,
}


class BookContents(AsyncLargeFileManager):
    """Notebooks that have the kernel's metadata only while they are open."""

    async def get(self, path, content=True, **kwargs):
        model = await super().get(path, content=content, **kwargs)
        _swap(model, STORED, SEEN)
        return model

    async def save(self, model, path=""):
        _swap(model, SEEN, STORED)
        return await super().save(model, path)


def _swap(model: dict, old: dict, new: dict) -> None:
    """Replace, in place, each of a notebook's metadata that equals `old` by `new`."""
    if model.get("type") != "notebook" or not model.get("content"):
        return
    metadata = model["content"]["metadata"]
    metadata.update({key: new[key] for key in old if metadata.get(key) == old[key]})


c = get_config()  # noqa: F821  Jupyter Server provides it
c.ServerApp.contents_manager_class = BookContents
