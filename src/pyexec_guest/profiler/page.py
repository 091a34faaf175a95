"""A flame graph as one file that needs nothing else: no script, style or font from anywhere."""

import html
import json

from pyexec_guest.profiler.tree import LONGEST_TEXT, Tree, amount

MOST_NODES = 5000
SMALLEST_SHARE = 0.0005
_WHAT = {
    "time": "Seconds, sampled by pyinstrument.",
    "calls": "Seconds, counted by cProfile; what a function takes is shared among its callers, an estimate.",
    "memory": "Bytes that were held when most was, recorded by memray.",
}


def flame_graph(tree: Tree, unit: str, mode: str, name: str) -> str:
    """Return the page."""
    totals = tree.totals()
    whole = sum(tree.own)
    large = [node for node in range(len(totals)) if totals[node] > 0 and totals[node] >= whole * SMALLEST_SHARE]
    # A parent is never smaller than its children, and older: it stays where they do.
    large = sorted(sorted(large, key=lambda node: (-totals[node], node))[:MOST_NODES])
    number_of = {node: number for number, node in enumerate(large)}
    data = {
        "unit": unit,
        "whole": whole,
        "frames": [[function[:LONGEST_TEXT], file[:LONGEST_TEXT], line] for function, file, line in tree.frames],
        "nodes": [[number_of.get(tree.parents[node], -1), tree.frame_of[node], totals[node]] for node in large],
    }
    # Within a script element only `</` ends it; names come from the program and may hold anything.
    text = json.dumps(data).replace("<", "\\u003c")
    title = html.escape(f"{name}: {mode}")
    said = html.escape(f"{amount(whole, unit)} in all. {_WHAT[mode]}")
    return _PAGE.replace("@TITLE@", title).replace("@SAID@", said).replace("@DATA@", text)


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 1em; color: #222; background: #fff; }
h1 { font-size: 1.2em; margin: 0; }
#graph { position: relative; margin-top: 1em; }
#graph div { position: absolute; height: 19px; overflow: hidden; white-space: nowrap; cursor: pointer;
 font: 12px/19px ui-monospace, monospace; padding-left: 3px; box-sizing: border-box; border: 1px solid #fff; }
#graph div.found { outline: 2px solid #06c; outline-offset: -2px; }
#graph div.above { opacity: .6; }
#said { min-height: 1.4em; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
input { font: inherit; padding: .1em .4em; }
</style>
</head>
<body>
<h1>@TITLE@</h1>
<p>@SAID@ Each bar is a call, the callers are above; click one to enlarge it, the topmost to go back.</p>
<p><label>Find <input id="find" type="search" placeholder="function or file"></label></p>
<div id="said"></div>
<div id="graph" role="img" aria-label="Flame graph"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const graph = document.getElementById("graph"), said = document.getElementById("said");
const find = document.getElementById("find");
const nodes = data.nodes.map(([parent, frame, value]) => ({parent, frame: data.frames[frame], value, below: []}));
const root = {parent: -2, frame: ["all", "", 0], value: data.whole, below: []};
nodes.forEach(node => { node.above = node.parent < 0 ? root : nodes[node.parent]; node.above.below.push(node); });
[root, ...nodes].forEach(node => node.below.sort((a, b) => b.value - a.value));
let shown = root;
function amount(value) {
  if (data.unit !== "bytes") return value.toFixed(value < 0.1 ? 4 : 3) + " s";
  for (const unit of ["B", "KiB", "MiB"]) { if (value < 1024) return value.toFixed(1) + " " + unit; value /= 1024; }
  return value.toFixed(2) + " GiB";
}
function about(node) {
  const [name, file, line] = node.frame, share = data.whole ? 100 * node.value / data.whole : 0;
  const where = file ? " (" + file + ":" + line + ")" : "";
  return name + where + "  " + amount(node.value) + ", " + share.toFixed(1) + "%";
}
function colour(text) {
  let hash = 7;
  for (let at = 0; at < text.length; at++) hash = (hash * 31 + text.charCodeAt(at)) % 9973;
  return "hsl(" + (10 + hash % 45) + " " + (70 + hash % 25) + "% " + (68 + hash % 12) + "%)";
}
function bar(node, left, width, row, isAbove) {
  const box = document.createElement("div"), wanted = find.value.toLowerCase();
  box.textContent = node.frame[0];
  box.title = about(node);
  box.style.cssText = "left:" + left + "%;width:" + width + "%;top:" + row * 20 + "px";
  box.style.background = node === root ? "#ddd" : colour(node.frame[0] + node.frame[1]);
  if (isAbove) box.className = "above";
  if (wanted && (node.frame[0] + " " + node.frame[1]).toLowerCase().includes(wanted)) box.classList.add("found");
  box.onmouseenter = () => { said.textContent = about(node); };
  box.onclick = () => { shown = node; draw(); };
  graph.append(box);
}
function draw() {
  graph.textContent = "";
  const above = [];
  for (let node = shown; node !== root; node = node.above) above.unshift(node.above);
  above.forEach((node, row) => bar(node, 0, 100, row, true));
  let rows = above.length, level = [[shown, 0, 100]];
  while (level.length) {
    const next = [];
    for (const [node, left, width] of level) {
      bar(node, left, width, rows, false);
      let at = left;
      for (const child of node.below) {
        const part = node.value ? width * child.value / node.value : 0;
        if (part > 0.05) next.push([child, at, part]);
        at += part;
      }
    }
    rows++;
    level = next;
  }
  graph.style.height = rows * 20 + "px";
  said.textContent = about(shown);
}
find.oninput = draw;
draw();
</script>
</body>
</html>
"""
