"""What XProf itself says of one file, as JSON: ``python xprof_answers.py FILE``.

The file must lie alone in its folder: XProf writes results beside it and finds them again by folder, not by file.
"""

from __future__ import annotations

import json
import sys

from xprof.convert import raw_to_tool_data
from xprof.convert.events_db.python import pywrap_events_db_c_api as events_db


def ask(path: str, tool: str) -> object:
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, {"use_saved_result": False})
    return json.loads(data)


def main(path: str) -> None:
    overview = {}
    for part in ask(path, "overview_page"):
        overview |= part.get("p", {})
    profile = ask(path, "op_profile")
    events_db.xspace_to_parquet(input_path=path, output_path=path + ".parquet")
    sys.stdout.write("ANSWERS " + json.dumps({"overview": overview, "profile": profile}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
