//! A result as readers see it: which columns, under which labels, each cell as text.

use super::number_format as format;
use crate::article::{BytesMeaning, TableColumn};
use crate::quantity::{Number, Table, Value, is_numeric_type};
use indexmap::IndexMap;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct ShownTable {
    pub headings: Vec<Heading>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Serialize)]
pub struct Heading {
    pub label: String,
    /// Aligned to the right.
    pub numeric: bool,
}

#[derive(Debug, Serialize)]
pub struct Cell {
    pub text: String,
    pub numeric: bool,
    pub null: bool,
}

/// Every column of `table`, in its query's order; `columns` gives labels and formats.
pub fn shown(
    table: &Table,
    columns: &IndexMap<String, TableColumn>,
    bytes: BytesMeaning,
) -> Result<ShownTable, String> {
    if let Some(name) = columns.keys().find(|name| table.column(name).is_none()) {
        return Err(format!("the query has no column `{name}`"));
    }
    let plain = TableColumn::default();
    let mut shown = ShownTable {
        headings: Vec::with_capacity(table.columns.len()),
        rows: table.rows.iter().map(|_| Vec::new()).collect(),
    };
    for index in 0..table.columns.len() {
        let name = &table.columns[index].name;
        let column = columns.get(name).unwrap_or(&plain);
        let numeric = is_numeric_type(&table.columns[index].type_name);
        shown.headings.push(Heading {
            label: column.label.clone().unwrap_or_else(|| name.clone()),
            numeric,
        });
        let decimals = column_decimals(table, index);
        for (row, cells) in table.rows.iter().zip(&mut shown.rows) {
            cells.push(cell(
                &row[index],
                column.format.as_deref(),
                decimals,
                numeric,
                bytes,
            )?);
        }
    }
    Ok(shown)
}

fn column_decimals(table: &Table, index: usize) -> i64 {
    let numbers = (table.rows.iter())
        .filter_map(|row| row[index].number())
        .filter_map(Number::finite);
    format::column_decimals(numbers)
}

fn cell(
    value: &Value,
    column_format: Option<&str>,
    decimals: i64,
    numeric: bool,
    bytes: BytesMeaning,
) -> Result<Cell, String> {
    let text = match (value, column_format) {
        (Value::Number(Number::Finite(number)), None) => format::fixed(number, decimals),
        (value, column_format) => format::value(value, column_format, bytes)?,
    };
    Ok(Cell {
        text,
        numeric,
        null: *value == Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Column;
    use crate::render::sample::number;

    #[test]
    fn cells_have_one_number_of_decimals_a_column_and_null_is_said() {
        let table = Table {
            columns: vec![Column::new("a", "numeric"), Column::new("b", "text")],
            rows: vec![
                vec![number("1.33333"), Value::Text("x".into())],
                vec![number("11.88"), Value::Null],
            ],
        };
        let all = shown(&table, &IndexMap::new(), BytesMeaning::Binary).unwrap();
        let texts: Vec<Vec<&str>> = (all.rows.iter())
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        assert_eq!(texts, [["1.333", "x"], ["11.880", "NULL"]]);
        assert!(all.headings[0].numeric && all.rows[1][1].null);
    }

    #[test]
    fn columns_give_labels_and_formats_and_the_others_stay() {
        let table = Table {
            columns: vec![Column::new("a", "integer"), Column::new("b", "bigint")],
            rows: vec![vec![number("1"), number("12345")]],
        };
        let columns: IndexMap<String, TableColumn> = [(
            "b".to_owned(),
            TableColumn {
                label: Some("B".into()),
                format: Some("0.0".into()),
            },
        )]
        .into();
        let shown_table = shown(&table, &columns, BytesMeaning::Binary).unwrap();
        assert_eq!(shown_table.headings[0].label, "a");
        assert_eq!(shown_table.headings[1].label, "B");
        assert_eq!(shown_table.rows[0][1].text, "12345.0");
        let missing = [("c".to_owned(), TableColumn::default())].into();
        assert!(shown(&table, &missing, BytesMeaning::Binary).is_err());
    }
}
