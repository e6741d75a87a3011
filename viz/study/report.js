// Draws the figures of the report. Their texts take the page's colours from its style sheet.
{
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const family = getComputedStyle(document.body).fontFamily;
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };

  for (const plot of plots) {
    const { data, layout } = figures[plot.id];
    for (const [name, axis] of Object.entries(layout))
      if (/^[xy]axis/.test(name) && axis.title) axis.title.font = { size: 12 };
    Plotly.newPlot(plot, data, { ...layout, font: { family, size: 12 } }, config);
  }

  // A sheet of paper has another width than the window, nothing tells the figures, and nobody can open a table.
  const PAPER = 660;
  const tables = document.querySelectorAll("details");
  addEventListener("beforeprint", () => {
    tables.forEach((table) => (table.open = true));
    plots.forEach((plot) => Plotly.relayout(plot, { width: PAPER }));
  });
  addEventListener("afterprint", () => {
    plots.forEach((plot) => Plotly.relayout(plot, { width: null, autosize: true }));
  });
}
