"""What mypy must conclude from the overloads; the functions are checked, not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pillole import (
    AsyncClient,
    AsyncHistory,
    AsyncStream,
    Client,
    Export,
    History,
    Latest,
    LatestMany,
    Stream,
)

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


def plain_face(client: Client) -> None:
    assert_type(client.verify("7203.T"), dict[str, Any])
    assert_type(client.analytics("bars", symbol="7203.T"), dict[str, Any])
    assert_type(client.status(), dict[str, Any])
    assert_type(client.history("7203.T", "2026-11-20T00:00:00Z", order="desc"), History)
    assert_type(client.export("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"), Export)
    assert_type(client.stream("*", mode="latest"), Stream)
    client.analytics("some")  # type: ignore[arg-type]
    client.history("7203.T")  # type: ignore[call-arg]
    client.export("a", "b", format="xlsx")  # type: ignore[arg-type]


async def asyncio_face(client: AsyncClient) -> None:
    assert_type(await client.verify("7203.T"), dict[str, Any])
    assert_type(await client.usage(days=3), dict[str, Any])
    assert_type(client.history("7203.T", "2026-11-20T00:00:00Z"), AsyncHistory)
    assert_type(await client.export("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"), Export)
    assert_type(client.stream("*"), AsyncStream)
    assert_type(await client.latest(["7203.T"]), LatestMany)
    client.verify("7203.T")["verdict"]  # type: ignore[index]
    client.stream("*", buffer=1)  # type: ignore[call-arg]
