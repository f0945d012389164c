//! Draws a chart block's rows as SVG through charming's option model and ECharts. Entry: [`draw`].
