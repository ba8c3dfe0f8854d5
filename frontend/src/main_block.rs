//! The block of a script that runs only in the main program: `if __name__ == "__main__":`.

use nki_diag::FileId;

use crate::syntax::parse::parse;
use crate::syntax::{Interner, StmtKind};

/// Whether a file has a main block at its top level. In a file with syntax that the evaluator does not support, lines that look like its
/// start count.
pub fn has_main_block(text: &str) -> bool {
    let is_test = |test: &str| test.contains("__name__") && test.contains("__main__");
    let (ast, wrong) = parse(FileId(0), text, &mut Interner::new());
    if !wrong.is_empty() {
        return text.lines().any(|line| line.strip_prefix("if ").is_some_and(is_test));
    }
    ast.body.iter().any(|stmt| match &stmt.kind {
        StmtKind::If(branches, _) => {
            branches.iter().any(|(test, _)| is_test(&text[test.span.start as usize..test.span.end as usize]))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::has_main_block;

    #[test]
    fn main_blocks_are_found() {
        assert!(has_main_block("x = 1\nif __name__ == \"__main__\":\n    pass\n"));
        assert!(has_main_block("if '__main__' == __name__: pass"));
        assert!(has_main_block("if (\n    __name__ == '__main__'\n):\n    pass\n"));
        assert!(has_main_block("x = = 1\nif __name__ == '__main__':\n    pass\n"));
        assert!(!has_main_block("def f():\n    if __name__ == '__main__':\n        pass\n"));
        assert!(!has_main_block("# if __name__ == '__main__':"));
        assert!(!has_main_block("\"\"\"Usage:\n\nif __name__ == '__main__':\n    run()\n\"\"\"\nimport nki\n"));
    }
}
