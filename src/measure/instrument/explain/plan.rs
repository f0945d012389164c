//! A plan as Postgres tells it in JSON: its nodes, and the figures over all of them. What a plan
//! has not is None, never 0.

use super::json::Json;
use bigdecimal::BigDecimal;
use std::collections::BTreeSet;

/// The first and only element of what `EXPLAIN (FORMAT JSON)` gives.
pub struct Plan {
    json: Json,
}

/// One node, with its place in the tree.
pub struct Node<'p> {
    pub json: &'p Json,
    /// From 1, a node before those below it.
    pub number: usize,
    pub parent: Option<usize>,
    pub depth: usize,
}

impl Plan {
    pub fn parse(text: &str) -> Option<Self> {
        let Json::List(plans) = Json::parse(text)? else {
            return None;
        };
        let json = plans.into_iter().next()?;
        json.field("Plan")?;
        Some(Self { json })
    }

    /// Of the whole query: `Planning`, `Triggers`, `Execution Time` …
    pub fn field(&self, name: &str) -> Option<&Json> {
        self.json.field(name)
    }

    pub fn number(&self, name: &str) -> Option<BigDecimal> {
        self.field(name)?.text()?.parse().ok()
    }

    pub fn top(&self) -> Node<'_> {
        let node = self.json.field("Plan");
        Node {
            json: node.unwrap_or(&self.json),
            number: 1,
            parent: None,
            depth: 0,
        }
    }

    /// All nodes as the text format prints them.
    pub fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Vec::new();
        collect(self.top(), &mut nodes);
        nodes
    }

    /// Over all nodes; None where none has it.
    pub fn sum(&self, name: &str) -> Option<BigDecimal> {
        let nodes = self.nodes();
        let mut numbers = nodes.iter().filter_map(|node| node.number(name)).peekable();
        numbers.peek()?;
        Some(numbers.sum())
    }

    /// The different values of the nodes, in their order: `Index Name`, say.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let nodes = self.nodes().into_iter();
        nodes
            .filter_map(|node| node.json.field(name)?.text())
            .filter(|text| seen.insert(*text))
            .collect()
    }

    /// Buffers that planning used; None where they were not counted.
    pub fn planning_buffers(&self) -> Option<BigDecimal> {
        let planning = self.field("Planning")?;
        let of = |name: &str| -> Option<BigDecimal> { planning.field(name)?.text()?.parse().ok() };
        Some(of("Shared Hit Blocks")? + of("Shared Read Blocks")?)
    }

    /// Rows that filters, join filters and rechecks threw away: what a node says of one loop, times
    /// its loops.
    pub fn rows_removed(&self) -> Option<BigDecimal> {
        let nodes = self.nodes();
        let mut removed = nodes
            .iter()
            .filter_map(|node| Some(node.removed()? * node.number("Actual Loops")?))
            .peekable();
        removed.peek()?;
        Some(removed.sum())
    }

    /// How many rows the statement gave or wrote, where the plan tells exactly: what a query
    /// returns; what a plain INSERT is fed; what UPDATE and DELETE find by a scan of the table
    /// itself (a join may find a row twice, and it is written once).
    pub fn rows(&self) -> Option<u64> {
        let top = self.top();
        let rows = |node: &Node| {
            let rows = node.number("Actual Rows")? * node.number("Actual Loops")?;
            rows.with_scale(0).to_string().parse().ok()
        };
        if top.text("Node Type") != Some("ModifyTable") {
            return rows(&top);
        }
        let children = top.children();
        let child = children
            .iter()
            .find(|node| node.is("Parent Relationship", "Outer"));
        let child = child.or(children
            .iter()
            .find(|node| node.is("Parent Relationship", "Member")))?;
        let fired = self.field("Triggers").is_some_and(|all| {
            // A BEFORE trigger may keep a row from being written; those of constraints never do.
            let mut triggers = all.items().iter();
            triggers.any(|trigger| trigger.field("Constraint Name").is_none())
        });
        if fired {
            return None;
        }
        let scan = child.text("Node Type").is_some_and(|kind| {
            kind.ends_with("Scan") && !kind.contains("Subquery") && !kind.contains("Function")
        });
        match top.text("Operation")? {
            "Insert" if top.json.field("Conflict Resolution").is_none() => rows(child),
            "Update" | "Delete"
                if scan && child.text("Relation Name") == top.text("Relation Name") =>
            {
                rows(child)
            }
            _ => None,
        }
    }

    /// What two runs of the same plan have in common: nodes, relations and indexes at their depths.
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        for node in self.nodes() {
            let names = [
                "Node Type",
                "Strategy",
                "Join Type",
                "Relation Name",
                "Index Name",
            ];
            let names: Vec<&str> = names.iter().filter_map(|name| node.text(name)).collect();
            shape.push_str(&format!("{}:{};", node.depth, names.join("/")));
        }
        shape
    }
}

/// Sub-plans come in the order of the JSON, which is that of the text.
fn collect<'p>(node: Node<'p>, nodes: &mut Vec<Node<'p>>) {
    let number = nodes.len() + 1;
    let depth = node.depth;
    let json = node.json;
    nodes.push(Node { number, ..node });
    for child in json.field("Plans").map_or(&[][..], Json::items) {
        let child = Node {
            json: child,
            number: 0,
            parent: Some(number),
            depth: depth + 1,
        };
        collect(child, nodes);
    }
}

impl<'p> Node<'p> {
    pub fn text(&self, name: &str) -> Option<&'p str> {
        self.json.field(name)?.text()
    }

    pub fn is(&self, name: &str, text: &str) -> bool {
        self.text(name) == Some(text)
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.json.field(name) == Some(&Json::Boolean(true))
    }

    pub fn number(&self, name: &str) -> Option<BigDecimal> {
        self.text(name)?.parse().ok()
    }

    /// Found in shared buffers and read into them, by the node and those below it.
    pub fn buffers(&self) -> Option<BigDecimal> {
        Some(self.pages("Shared Hit Blocks")? + self.pages("Shared Read Blocks")?)
    }

    /// What was counted while it was executed. A plan that was not tells 0 of each.
    pub fn pages(&self, name: &str) -> Option<BigDecimal> {
        self.json.field("Actual Loops")?;
        self.number(name)
    }

    pub fn removed(&self) -> Option<BigDecimal> {
        let names = [
            "Rows Removed by Filter",
            "Rows Removed by Join Filter",
            "Rows Removed by Index Recheck",
        ];
        let mut removed = names.iter().filter_map(|name| self.number(name)).peekable();
        removed.peek()?;
        Some(removed.sum())
    }

    fn children(&self) -> Vec<Node<'p>> {
        let children = self.json.field("Plans").map_or(&[][..], Json::items);
        children
            .iter()
            .map(|json| Node {
                json,
                number: 0,
                parent: Some(self.number),
                depth: self.depth + 1,
            })
            .collect()
    }
}
