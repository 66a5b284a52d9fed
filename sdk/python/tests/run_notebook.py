"""Runs a notebook in this Python's kernel, and writes its plots: run_notebook.py NOTEBOOK FOLDER

Prints the text outputs. Ends with 1 and the error of the first cell that fails."""

import base64
import sys
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CELL_MAX_S = 120


def run(notebook: Path, folder: Path) -> int:
    """Runs all cells in order; returns the exit code."""
    book = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    specs = KernelSpecManager()
    # The kernel of this Python, whatever kernels the machine has.
    specs.ensure_native_kernel = True
    # A TCP port would be open to other users of the machine.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs, transport="ipc")
    try:
        NotebookClient(book, km=manager, timeout=CELL_MAX_S).execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    for number, cell in enumerate(book.cells):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                png = base64.b64decode(data["image/png"])
                (folder / f"cell-{number:02}.png").write_bytes(png)
            print(output.get("text") or data.get("text/plain", ""))
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2])))
