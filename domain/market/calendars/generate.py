"""Writes domain/market/calendars/data/*.json from exchange_calendars (Apache-2.0) and corrections.json.

    python -m venv venv && venv/bin/pip install -r domain/market/calendars/requirements.txt
    venv/bin/python domain/market/calendars/generate.py [folder]

The same packages and corrections give the same bytes. When the package has a new year, raise its
version in requirements.in, compile requirements.txt, raise UNTIL below, and run again; look at the diff.
"""

import json
import sys
import warnings
from datetime import date, datetime, time, timedelta
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

from exchange_calendars.calendar_utils import global_calendar_dispatcher

HERE = Path(__file__).parent
FROM = date(2024, 1, 1)
# Most calendars of the package are rules without an end. Exchanges announce their days a year or
# less ahead, so the days that the rules give for later years do not count as known.
UNTIL = date(2027, 12, 31)
LINE_WIDTH = 100  # as biome.json

# Venue → calendar of the package. XSHE and XNSE are not in it: they keep the days and hours of the
# other exchange of their country.
VENUES = {
    "XASX": "XASX",
    "XBKK": "XBKK",
    "XBOM": "XBOM",
    "XHKG": "XHKG",
    "XIDX": "XIDX",
    "XKLS": "XKLS",
    "XKRX": "XKRX",
    "XNSE": "XBOM",
    "XNZE": "XNZE",
    "XPHS": "XPHS",
    "XSES": "XSES",
    "XSHE": "XSHG",
    "XSHG": "XSHG",
    "XTAI": "XTAI",
    "XTKS": "XTKS",
}

# Currency pairs: our own rule, no package. The market is open from Sunday 22:00 to Friday 22:00
# UTC, in summer too (17:00 in New York would be 21:00 then). In UTC+2 this is Monday to Friday from
# midnight to midnight. Bank holidays are not considered.
FX = {
    "venue": "FX",
    "timezone": "Etc/GMT-2",
    "source": "own rule: Sunday 22:00 to Friday 22:00 UTC",
    "from": FROM.isoformat(),
    "until": "2049-12-31",
    "utc_offset_minutes": {FROM.isoformat(): 120},
    "week": {FROM.isoformat(): ["00:00-24:00"] * 5},
    "closed": [],
    "special": {},
}


def make_calendar(venue: str, corrections: dict) -> dict:
    name = VENUES[venue]
    factory = global_calendar_dispatcher._calendar_factories[name]
    correction = corrections.get(name, {})
    until = min([UNTIL, *bounds(factory, correction)])
    calendar = factory(start=FROM.isoformat(), end=until.isoformat())
    zone = ZoneInfo(str(calendar.tz))
    sessions = read_sessions(calendar, zone)
    days = corrected_days(correction)

    closed, special, week, ordinary_before = [], {}, {}, None
    for day in each_day(FROM, until):
        ordinary, packaged = ordinary_week(calendar, correction, day)
        if ordinary != ordinary_before:
            week[day.isoformat()] = ordinary
            ordinary_before = ordinary
        usual = ordinary[day.weekday()] if day.weekday() < 5 else "closed"
        hours = days.get(day, sessions.get(day, "closed"))
        if day not in days and hours == packaged:
            hours = usual
        if hours == usual:
            continue
        if hours == "closed":
            closed.append(day.isoformat())
        else:
            special[day.isoformat()] = hours
    return {
        "venue": venue,
        "timezone": str(calendar.tz),
        "source": describe(name, venue, correction),
        "from": FROM.isoformat(),
        "until": until.isoformat(),
        "utc_offset_minutes": utc_offsets(zone, until),
        "week": week,
        "closed": closed,
        "special": special,
    }


def bounds(factory, correction: dict) -> list[date]:
    """The last days that the package or a correction says are known."""
    bound = factory.bound_max()
    known = [] if bound is None else [bound.date()]
    if "until" in correction:
        known.append(date.fromisoformat(correction["until"]["date"]))
    return known


def read_sessions(calendar, zone: ZoneInfo) -> dict[date, str]:
    """Hours of each session in local time, such as "09:00-11:30 12:30-15:30"."""

    def local(moment) -> time:
        return moment.tz_convert(zone).time()

    sessions = {}
    for day, row in calendar.schedule.iterrows():
        has_break = row["break_start"] == row["break_start"]  # NaT differs from itself
        pauses = (local(row["break_start"]), local(row["break_end"])) if has_break else None
        sessions[day.date()] = write_hours(local(row["open"]), pauses, local(row["close"]))
    return sessions


def ordinary_week(calendar, correction: dict, day: date) -> tuple[list[str], str]:
    """Ordinary hours from Monday to Friday in force on a day, and the hours of the package."""

    def at(times) -> time | None:
        valid = [value for start, value in times or () if start is None or start.date() <= day]
        return valid[-1] if valid else None

    pauses = (at(calendar.break_start_times), at(calendar.break_end_times))
    packaged = write_hours(
        at(calendar.open_times), None if pauses[0] is None else pauses, at(calendar.close_times)
    )
    week = [packaged] * 5
    for rule in correction.get("hours", []):
        if date.fromisoformat(rule["from"]) <= day:
            for weekday in rule["weekdays"]:
                week[weekday - 1] = rule["hours"]
    return week, packaged


def corrected_days(correction: dict) -> dict[date, str]:
    days = {day: entry["hours"] for day, entry in correction.get("days", {}).items()}
    half = correction.get("half_days", {"days": []})
    days |= {day: half["hours"] for day in half["days"]}
    days |= {day: "closed" for day in correction.get("closures", {"days": []})["days"]}
    return {date.fromisoformat(day): hours for day, hours in days.items()}


def utc_offsets(zone: ZoneInfo, until: date) -> dict[str, int]:
    """Offset from UTC in minutes at noon, by the day from which the offset applies."""
    offsets, before = {}, None
    for day in each_day(FROM, until + timedelta(days=1)):
        offset = datetime.combine(day, time(12), zone).utcoffset() // timedelta(minutes=1)
        if offset != before:
            offsets[day.isoformat()] = offset
            before = offset
    return offsets


def describe(name: str, venue: str, correction: dict) -> str:
    source = f"exchange_calendars {version('exchange_calendars')}, {name}"
    if name != venue:
        source += f" (the package has no {venue})"
    return source + (", domain/market/calendars/corrections.json" if correction else "")


def write_hours(opens: time, pauses: tuple[time, time] | None, closes: time) -> str:
    ends = [opens, *(pauses or ()), closes]
    texts = [f"{end:%H:%M}" for end in ends]
    return " ".join("-".join(texts[i : i + 2]) for i in range(0, len(texts), 2))


def each_day(first: date, last: date):
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def to_json(value, indent: str = "", used: int = 0) -> str:
    """JSON as biome formats it: an array in one line where it fits, an object never."""
    if isinstance(value, dict) and value:
        inner = indent + "  "
        lines = []
        for key, entry in value.items():
            head = f"{inner}{json.dumps(key)}: "
            lines.append(head + to_json(entry, inner, len(head) + 1))
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list) or used + len(flat) <= LINE_WIDTH:
        return flat
    lines = [f"{indent}  {json.dumps(entry)}" for entry in value]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]"


def main() -> None:
    warnings.simplefilter("ignore")  # pandas on time zones of offsets
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "data"
    corrections = json.loads((HERE / "corrections.json").read_text("utf-8"))
    calendars = [FX, *(make_calendar(venue, corrections) for venue in VENUES)]
    for calendar in calendars:
        text = to_json(calendar) + "\n"
        (folder / f"{calendar['venue']}.json").write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
