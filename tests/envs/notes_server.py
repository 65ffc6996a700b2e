"""A small MCP server over stdio, for the tests."""

import os
import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")
notes: list[str] = []


@server.tool()
def add_note(text: str) -> int:
    """Add a note."""
    notes.append(text)
    return len(notes)


@server.tool()
def list_notes() -> list[str]:
    """List the notes."""
    return notes


@server.tool()
def delete_note(text: str) -> bool:
    """Delete a note."""
    if text not in notes:
        raise ValueError(f"there is no note {text!r}")
    notes.remove(text)
    return True


@server.tool()
def crash() -> int:
    """End the server at once."""
    os._exit(3)


@server.tool()
def hang() -> int:
    """Never answer."""
    time.sleep(600)
    return 1


if __name__ == "__main__":
    server.run()
