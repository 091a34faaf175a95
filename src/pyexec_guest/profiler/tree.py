"""What was measured: a tree of calls, each with its own share of seconds or bytes."""

LONGEST_TEXT = 300
MOST_ROWS = 200
OUTLINE_LINES = 25
OUTLINE_SHARE = 0.02
OUTLINE_DEPTH = 40

Frame = "tuple[str, str, int]"  # A function, its file, a line.


class Tree:
    """Calls below calls. Nodes are numbers; the parent of a top one is -1."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, str, int]] = []
        self.parents: list[int] = []
        self.frame_of: list[int] = []
        self.own: list[float] = []
        self.counts: list[int] = []
        self._frames: dict[tuple[str, str, int], int] = {}
        self._children: dict[tuple[int, int], int] = {}

    def child(self, parent: int, frame: "tuple[str, str, int]") -> int:
        """Return the node of a call from another one."""
        index = self._frames.get(frame)
        if index is None:
            index = self._frames[frame] = len(self.frames)
            self.frames.append(frame)
        node = self._children.get((parent, index))
        if node is None:
            node = self._children[parent, index] = len(self.parents)
            self.parents.append(parent)
            self.frame_of.append(index)
            self.own.append(0.0)
            self.counts.append(0)
        return node

    def totals(self) -> "list[float]":
        """Return for each node its own share and that of all below it."""
        totals = self.own[:]
        for node in range(len(totals) - 1, -1, -1):  # A parent is always older than its children.
            if self.parents[node] >= 0:
                totals[self.parents[node]] += totals[node]
        return totals

    def rows(self) -> "list[list[object]]":
        """Return function, file, line, own, total and count for each frame; what calls itself counts once."""
        own = [0.0] * len(self.frames)
        total = [0.0] * len(self.frames)
        counts = [0] * len(self.frames)
        totals = self.totals()
        for node, index in enumerate(self.frame_of):
            own[index] += self.own[node]
            counts[index] += self.counts[node]
        active = [0] * len(self.frames)
        for node in self._walk():
            if node < 0:
                active[self.frame_of[-node - 1]] -= 1
                continue
            index = self.frame_of[node]
            if not active[index]:
                total[index] += totals[node]
            active[index] += 1
        return [[*frame, own[index], total[index], counts[index]] for index, frame in enumerate(self.frames)]

    def children(self) -> "list[list[int]]":
        """Return the children of each node, the largest first; those of the top ones' parent last."""
        totals = self.totals()
        below: list[list[int]] = [[] for _ in range(len(self.parents) + 1)]
        for node, parent in enumerate(self.parents):
            below[parent].append(node)
        for nodes in below:
            nodes.sort(key=lambda node: -totals[node])
        return below

    def _walk(self) -> "list[int]":
        """Return all nodes in the order of the calls; `-node - 1` where one returns."""
        below = self.children()
        steps: list[int] = []
        waiting = list(below[-1])
        while waiting:
            node = waiting.pop()
            steps.append(node)
            if node >= 0:
                waiting.append(-node - 1)
                waiting.extend(below[node])
        return steps


def top(rows: "list[list[object]]") -> "list[list[object]]":
    """Return the rows that matter: those first by their own share, with those first by their total."""
    by_own = sorted(rows, key=lambda row: -_number(row[3]))[:MOST_ROWS]
    by_total = sorted(rows, key=lambda row: -_number(row[4]))[:MOST_ROWS]
    chosen = {id(row): row for row in by_own + by_total}
    kept = sorted(chosen.values(), key=lambda row: (-_number(row[3]), -_number(row[4])))
    return [[_short(row[0]), _short(row[1]), *row[2:]] for row in kept]


def outline(tree: Tree, unit: str) -> str:
    """Return the largest calls as indented lines."""
    totals = tree.totals()
    below = tree.children()
    whole = sum(totals[node] for node in below[-1]) or 1.0
    lines: list[str] = []
    waiting = [(node, 0) for node in reversed(below[-1])]
    while waiting:
        node, depth = waiting.pop()
        if totals[node] < whole * OUTLINE_SHARE or depth > OUTLINE_DEPTH:
            continue
        if len(lines) == OUTLINE_LINES:
            lines.append("...")
            break
        function, file, line = tree.frames[tree.frame_of[node]]
        where = f"  {_short(file)}:{line}" if file else ""
        share = 100 * totals[node] / whole
        lines.append(f"{' ' * depth}{amount(totals[node], unit)} {share:.0f}% {_short(function)}{where}")
        waiting.extend((child, depth + 1) for child in reversed(below[node]))
    return "\n".join(lines)


def amount(value: float, unit: str) -> str:
    """Return seconds or bytes for people."""
    if unit == "bytes":
        for name in ("B", "KiB", "MiB"):
            if value < 1024:
                return f"{value:.0f} {name}" if name == "B" else f"{value:.1f} {name}"
            value /= 1024
        return f"{value:.2f} GiB"
    return f"{value:.3f} s"


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) else 0.0


def _short(text: object) -> str:
    return str(text)[:LONGEST_TEXT]
