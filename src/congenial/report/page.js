"use strict";
(function () {
  // One page of rows is in the document at a time, however many the release has.
  const SIZE = 50, FILES = 4;
  const data = JSON.parse(document.getElementById("data").textContent);
  const more = data.more;
  const listed = data.value.length;
  const at = (id) => document.getElementById(id);
  const body = at("table").tBodies[0];
  const numbers = new Intl.NumberFormat("en-US");
  const order = new Intl.Collator("en", { numeric: true });
  const level = at("level"), search = at("search"), need = at("need");
  const heads = Array.from(document.querySelectorAll("#table thead button"));
  const texts = [];
  // scripts that were asked for, and the paths and the places of counts that came with them
  const asked = new Set(), paths = new Map(), places = new Map();
  let missing = false, cut = false, shown = [], page = 0, key = "value", down = true, span = [0, 1];

  // A script of the page's own making is allowed to load, from a disk too.
  function load(part) {
    if (asked.has(part)) return;
    asked.add(part);
    const made = document.createElement("script");
    made.src = more.folder + "/" + part + ".js";
    made.onerror = () => { asked.delete(part); missing = true; draw(); };
    document.head.append(made);
  }

  // What is searched for and what it is compared with: in lower case, without accents.
  const plain = (words) => words.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

  window.congenial = (part, found) => {
    let row = data.name.length;
    for (const [place, times] of found.place) {
      for (let i = 0; i < times; i += 1, row += 1) places.set(row, place);
    }
    found.name.forEach((name, i) => {
      paths.set(data.name.length, found.path[i]);
      data.parent.push(-1);
      for (const key of ["name", "level", "value", "lower", "upper", "exact"]) {
        data[key].push(found[key][i]);
      }
      if (data.measured) data.measured.push(found.measured[i]);
    });
    choose();
  };

  // Loads the scripts of places that begin with what is searched for: a few, so that typing stays fast.
  function find(sought) {
    cut = false;
    if (!more || sought === "") return;
    let part = 0, end = more.first.length;
    while (part < end) {
      const middle = (part + end) >> 1;
      if (more.first[middle] < sought) part = middle + 1; else end = middle;
    }
    part = Math.max(0, part - 1);
    for (const last = part + FILES; part < last && part < more.first.length; part += 1) {
      if (more.first[part] > sought && !more.first[part].startsWith(sought)) return;
      load(part);
    }
    cut = part < more.first.length && more.first[part].startsWith(sought);
  }

  function path(row) {
    if (paths.has(row)) return paths.get(row);
    const names = [];
    for (let v = data.parent[row]; v >= 0; v = data.parent[v]) names.unshift(data.name[v]);
    return names.join(" / ");
  }

  function text(row) {
    if (texts[row] === undefined) texts[row] = plain(path(row) + " / " + data.name[row]);
    return texts[row];
  }

  // Counts that came with scripts are found by the beginning of their place's name alone. So what is
  // found does not depend on what was searched for before.
  function fitting(row, sought) {
    if (row >= listed) return places.get(row).startsWith(sought);
    return text(row).includes(sought) || text(row).includes(sought.replace(/ ?\/ ?/g, " / "));
  }

  // how far the true count may be away, upwards or downwards
  function reach(row) {
    if (data.lower[row] === null) return null;
    return Math.max(data.value[row] - data.lower[row], data.upper[row] - data.value[row]);
  }

  function interval(row) {
    const low = data.lower[row], high = data.upper[row], value = data.value[row];
    if (low === null) return "not known";
    if (data.exact[row]) return "exact";
    if (low === high) return numbers.format(low) + ", not exact";
    return !data.bent && value - low === high - value
      ? "\u00b1" + numbers.format(high - value)
      : numbers.format(low) + " to " + numbers.format(high);
  }

  function measured(row) {
    if (!data.measured) return [];
    const value = data.measured[row];
    return [cell("td", "number", value === null ? "none" : numbers.format(value))];
  }

  function good(row) {
    const margin = reach(row), share = Number(need.value) / 100;
    if (margin === null || need.value === "") return null;
    // a measurement far below 0 leaves only 0, which says little about the count
    if (data.cut && margin === 0 && !data.exact[row] && data.value[row] === 0) return false;
    return margin <= share * Math.abs(data.value[row]);
  }

  function low(row) {
    const value = data.value[row], end = data.lower[row] === null ? value : data.lower[row];
    return value >= 0 ? Math.max(0, end) : end;
  }

  const high = (row) => (data.upper[row] === null ? data.value[row] : data.upper[row]);

  function choose() {
    const wanted = level.value, sought = plain(search.value.trim().replace(/\s+/g, " "));
    find(sought);
    shown = [];
    for (let row = 0; row < data.value.length; row += 1) {
      if (wanted !== "all" && data.level[row] !== Number(wanted)) continue;
      if (sought === "" ? row >= listed : !fitting(row, sought)) continue;
      shown.push(row);
    }
    span = [0, 1];
    for (const row of shown) {
      span[0] = Math.min(span[0], low(row), data.value[row]);
      span[1] = Math.max(span[1], high(row), data.value[row]);
    }
    sort();
  }

  function sort() {
    const known = (row) => (data.lower[row] === null ? Infinity : data.upper[row] - data.lower[row]);
    const by = {
      name: (a, b) => order.compare(data.name[a], data.name[b]),
      value: (a, b) => data.value[a] - data.value[b],
      margin: (a, b) => (known(a) === known(b) ? 0 : known(a) - known(b)),
    }[key];
    shown.sort((a, b) => (by ? (down ? -by(a, b) : by(a, b)) : 0) || a - b);
    page = 0;
    draw();
  }

  function cell(tag, kind, content) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (content !== undefined) made.textContent = content;
    return made;
  }

  function place(element, from, to) {
    const width = span[1] - span[0];
    element.style.left = (100 * (from - span[0])) / width + "%";
    element.style.width = (100 * (to - from)) / width + "%";
    return element;
  }

  function line(row) {
    const value = data.value[row], made = document.createElement("tr");
    const name = cell("th", "", data.name[row]);
    name.scope = "row";
    if (path(row) !== "") name.append(cell("span", "path", path(row)));
    const fits = good(row);
    const bars = cell("td", "bars"), track = cell("div", "track");
    bars.setAttribute("aria-hidden", "true");
    track.append(place(cell("div", "bar"), Math.min(0, value), Math.max(0, value)));
    if (high(row) > low(row)) track.append(place(cell("div", "margin"), low(row), high(row)));
    bars.append(track);
    made.append(
      name,
      cell("td", "number", numbers.format(value)),
      ...measured(row),
      cell("td", "number", interval(row)),
      cell("td", "fits", fits === null ? "not known" : fits ? "yes" : "no"),
      bars
    );
    return made;
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / SIZE)), start = page * SIZE;
    const rows = shown.slice(start, start + SIZE);
    body.replaceChildren(...rows.map(line));
    at("status").textContent = rows.length === 0
      ? missing ? "A file beside this page is missing, so some counts are not found."
        : more && search.value.trim() === ""
          ? more.left.includes(Number(level.value))
            ? "The counts of this level are in release.csv and release.parquet only."
            : "Search for the beginning of a name to see counts of this level."
          : more && more.left.length > 0 ? "No place on this page has that name." : "No place has that name."
      : "Counts " + numbers.format(start + 1) + " to " + numbers.format(start + rows.length) +
        " of " + numbers.format(shown.length) + "." +
        (cut ? " More places begin with this; type more of the name." : "");
    at("page").textContent = "Page " + numbers.format(page + 1) + " of " + numbers.format(pages);
    // a button that was disabled would lose the focus of whoever pressed it
    for (const [id, done] of [["first", page === 0], ["before", page === 0],
      ["after", page === pages - 1], ["last", page === pages - 1]]) {
      at(id).setAttribute("aria-disabled", String(done));
    }
    for (const head of heads) {
      const way = head.dataset.key !== key ? "none" : down ? "descending" : "ascending";
      head.parentElement.setAttribute("aria-sort", way);
    }
  }

  // the share of a level's counts that are accurate enough, by quantiles
  function part(shares) {
    const wanted = Number(need.value) / 100;
    return shares.filter((share) => share !== null && share <= wanted).length / shares.length;
  }

  function judge() {
    const have = data.levels.map(() => 0), known = data.levels.map(() => 0);
    for (let row = 0; row < listed; row += 1) {
      const fits = good(row);
      if (fits !== null) known[data.level[row]] += 1;
      if (fits) have[data.level[row]] += 1;
    }
    document.querySelectorAll("#levels tbody tr").forEach((made, i) => {
      const [shares, all] = (more && more.levels[i]) || [null, known[i]];
      made.lastElementChild.textContent = all === 0 || need.value === ""
        ? "not known"
        : shares === null
          ? numbers.format(have[i]) + " of " + numbers.format(all)
          : "about " + numbers.format(Math.round(100 * part(shares))) + "% of " + numbers.format(all);
    });
  }

  function move(to) {
    page = to;
    draw();
  }

  function later(work) {
    let waiting = 0;
    return () => {
      clearTimeout(waiting);
      waiting = setTimeout(work, 120);
    };
  }

  const last = () => Math.max(0, Math.ceil(shown.length / SIZE) - 1);
  for (const head of heads) {
    head.addEventListener("click", () => {
      down = head.dataset.key === key ? !down : head.dataset.key !== "name";
      key = head.dataset.key;
      sort();
    });
  }
  level.addEventListener("change", choose);
  search.addEventListener("input", later(() => {
    // the counts found are most often of levels that are not listed
    if (more && search.value.trim() !== "") level.value = "all";
    choose();
  }));
  // nothing to hold a need against
  const unknown = data.lower.every((end, row) => end === null || data.exact[row]) &&
    !(more && Object.values(more.levels).some(([, all]) => all > 0));
  need.parentElement.hidden = unknown;
  for (const id of ["levels", "table"]) at(id).classList.toggle("unknown", unknown);
  need.addEventListener("input", later(() => { judge(); draw(); }));
  at("controls").addEventListener("submit", (event) => { event.preventDefault(); choose(); });
  at("first").addEventListener("click", () => move(0));
  at("before").addEventListener("click", () => move(Math.max(0, page - 1)));
  at("after").addEventListener("click", () => move(Math.min(last(), page + 1)));
  at("last").addEventListener("click", () => move(last()));
  judge();
  choose();
})();
