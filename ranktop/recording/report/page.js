(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const colors = ["#1f6f8b", "#8b5e1f", "#4a7c3a", "#7a3f7c", "#3a56a0", "#a03a4e", "#5c6670", "#1d8a7a"];
  const shades = { breach: "rgba(217,130,43,.16)", critical: "rgba(194,48,48,.18)" };
  const root = document.getElementById("charts");
  const sync = uPlot.sync("time");

  function shade(u) {
    const { ctx, bbox } = u;
    ctx.save();
    for (const [begin, end, severity] of data.bands) {
      const x0 = Math.max(bbox.left, u.valToPos(begin, "x", true));
      const x1 = Math.min(bbox.left + bbox.width, u.valToPos(end, "x", true));
      if (x1 < bbox.left || x0 > bbox.left + bbox.width) continue;
      ctx.fillStyle = shades[severity];
      ctx.fillRect(x0, bbox.top, Math.max(1, x1 - x0), bbox.height);
    }
    ctx.fillStyle = "#1d232b";
    for (const [at] of data.marks) {
      const x = u.valToPos(at, "x", true);
      if (x >= bbox.left && x <= bbox.left + bbox.width) ctx.fillRect(x, bbox.top, 1, bbox.height);
    }
    ctx.restore();
  }

  function clocks(u, splits) {
    return splits.map((at) => new Date(at * 1000).toISOString().slice(11, 19));
  }

  for (const chart of data.charts) {
    const holder = document.createElement("div");
    holder.className = "chart";
    const title = document.createElement("h3");
    title.textContent = chart.title + ", " + chart.unit;
    holder.append(title);
    root.append(holder);
    const series = chart.traces.map((trace, index) => ({
      label: trace.label,
      stroke: trace.dashed ? "#6a7480" : colors[index % colors.length],
      dash: trace.dashed ? [6, 4] : undefined,
      width: 1.25,
      points: { show: data.times.length < 3 },
    }));
    new uPlot(
      {
        width: Math.min(1180, root.clientWidth || 1180),
        height: 180,
        cursor: { sync: { key: sync.key } },
        scales: { x: { time: true } },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        axes: [{ values: clocks, space: 90 }, { size: 70 }],
        series: [{ label: "time" }, ...series],
        hooks: { drawClear: [shade] },
      },
      [data.times, ...chart.traces.map((trace) => trace.values)],
      holder,
    );
  }
  document.body.dataset.charts = String(root.querySelectorAll("canvas").length);
})();
