"""What mypy must conclude from the overloads; the functions are checked, not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillole import AsyncClient, Client, Latest, LatestMany

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import assert_type


def frames(client: Client) -> None:
    history = client.history("7203.T", "2026-11-20T00:00:00Z")
    assert_type(history.to_df(), pandas.DataFrame)
    assert_type(history.to_df(tz="UTC", count=5), pandas.DataFrame)
    assert_type(history.to_df("Asia/Tokyo", 5, "pandas"), pandas.DataFrame)
    assert_type(history.to_df(tz="UTC", count=5, engine="polars"), polars.DataFrame)
    history.to_df(engine="excel")  # type: ignore[call-overload]
    history.to_df(count="5")  # type: ignore[call-overload]


async def async_frames(client: AsyncClient) -> None:
    history = client.history("7203.T", "2026-11-20T00:00:00Z")
    assert_type(await history.to_df(tz="UTC", count=5), pandas.DataFrame)
    assert_type(await history.to_df(engine="polars"), polars.DataFrame)


def newest(client: Client) -> None:
    assert_type(client.latest("7203.T"), Latest)
    assert_type(client.latest(["7203.T"]), LatestMany)
    client.stream("*", mode="some")  # type: ignore[arg-type]
