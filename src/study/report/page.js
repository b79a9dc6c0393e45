// Reads values off the curves: under the pointer, or with the arrow keys. The curves themselves
// are the data: what the axes span is said by data-x and data-y of the plot, as
// "scale low high pixel-of-low pixel-of-high format".
"use strict";
(() => {
  const axis = (text) => {
    const [scale, low, high, from, to, format] = text.split(" ");
    const [forth, back] = scale === "log" ? [Math.log, Math.exp] : [(v) => v, (v) => v];
    const [a, b] = [forth(+low), forth(+high)];
    return {
      from: +from, to: +to, format,
      // What is nearer to zero than a curve is drawn is zero.
      grain: scale === "log" ? 0 : (high - low) / 4000,
      value: (pixel) => back(a + (b - a) * (pixel - from) / (to - from)),
    };
  };
  const grouped = (v, decimals) => v.toLocaleString("en-US",
    { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const three = (v) => Math.abs(v) >= 100 ? grouped(v, 0) : String(+v.toPrecision(3));
  const scaled = (v, base, units) => {
    let unit = 0;
    for (; Math.round(Math.abs(v)) >= base && unit + 1 < units.length; unit++) v /= base;
    return three(v) + units[unit];
  };
  const written = (v, format) => {
    switch (format) {
      case "count": return Math.abs(v) < 10 ? String(+v.toPrecision(2)) : grouped(v, 0);
      case "short": return scaled(v, 1000, ["", " k", " M", " G", " T"]);
      case "share": return grouped(v * 100, 1) + "%";
      case "power": return v > 0 ? "2^" + (Math.round(Math.log2(v) * 10) / 10 + 0) : grouped(v, 0);
      default: return grouped(v, +format.slice("decimal".length));
    }
  };
  const near0 = (v, axis) => Math.abs(v) < axis.grain ? 0 : v;
  const pieces = (path) => path.getAttribute("d").split("M").slice(1).map((piece) => {
    const numbers = piece.split(/[L ]/).map(Number);
    return numbers.flatMap((_, i) => i % 2 ? [] : [[numbers[i], numbers[i + 1]]]);
  });
  const height = (pieces, x) => {
    for (const points of pieces) {
      for (let i = 0; i < points.length; i++) {
        const [[x0, y0], [x1, y1]] = [points[Math.max(i - 1, 0)], points[i]];
        if (x0 <= x && x <= x1) return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
      }
    }
    return null;
  };
  const element = (name, className, parent) => {
    const made = parent.namespaceURI.endsWith("svg")
      ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
    made.setAttribute("class", className);
    parent.append(made);
    return made;
  };
  const follow = (svg) => {
    const plot = svg.querySelector(".plot");
    if (!plot) return;
    const [x, y] = [axis(plot.dataset.x), axis(plot.dataset.y)];
    const series = [...plot.querySelectorAll("[data-name]")].flatMap((group) => {
      const path = group.querySelector(".line");
      return path ? [{ group, name: group.dataset.name, pieces: pieces(path) }] : [];
    });
    if (!series.length) return;
    const snaps = series.filter((one) => one.group.dataset.snap)
      .flatMap((one) => one.pieces.flat().map((point) => point[0]));
    let shown = [];
    let at = null;
    const hide = () => { shown.forEach((one) => one.remove()); shown = []; at = null; };
    const show = (pixel) => {
      hide();
      at = Math.min(Math.max(pixel, x.from), x.to);
      if (snaps.length) {
        at = snaps.reduce((a, b) => Math.abs(b - at) < Math.abs(a - at) ? b : a);
      }
      const cross = element("path", "cross", svg);
      cross.setAttribute("d", `M${at} ${y.to}V${y.from}`);
      const tip = element("div", "tip", svg.parentElement);
      element("b", "", tip).textContent = written(near0(x.value(at), x), x.format);
      shown = [cross, tip];
      const found = series.map((one) => [one, height(one.pieces, at)])
        .filter(([, pixel]) => pixel !== null && pixel >= y.to - 1 && pixel <= y.from + 1)
        .sort((a, b) => a[1] - b[1]);
      for (const [one, pixel] of found) {
        const dot = element("circle", "dot", svg);
        dot.style.color = getComputedStyle(one.group).color;
        for (const [name, value] of [["cx", at], ["cy", pixel], ["r", 4]]) {
          dot.setAttribute(name, value);
        }
        shown.push(dot);
        const row = element("div", "", tip);
        element("i", "", row).style.color = dot.style.color;
        element("span", "", row).textContent = one.name;
        element("em", "", row).textContent = written(near0(y.value(pixel), y), y.format);
      }
      const scale = svg.clientWidth / svg.viewBox.baseVal.width;
      const [left, room] = [at * scale, svg.clientWidth - tip.offsetWidth];
      const beside = left + 14 <= room ? left + 14 : left - 14 - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(beside, room))}px`;
      tip.style.top = `${y.to * scale}px`;
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      show((event.clientX - box.left) * svg.viewBox.baseVal.width / box.width);
    });
    svg.addEventListener("pointerdown", (event) => svg.dispatchEvent(
      new PointerEvent("pointermove", { clientX: event.clientX })));
    // A finger leaves by being lifted; what it asked for stays until it taps elsewhere.
    svg.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    svg.tabIndex = 0;
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const from = at ?? (step > 0 ? x.from : x.to);
      const sorted = [...new Set(snaps)].sort((a, b) => a - b);
      const next = step > 0 ? sorted.find((snap) => snap > from + 0.01)
        : sorted.findLast((snap) => snap < from - 0.01);
      show(snaps.length ? next ?? from : from + step * (x.to - x.from) / 50);
    });
  };
  document.querySelectorAll(".chart").forEach(follow);
  // Paper can't be unfolded.
  addEventListener("beforeprint", () =>
    document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
