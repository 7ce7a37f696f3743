//! Lists of cores as the kernel writes and reads them: `0-3,8`.

/// The greatest core number that is read. Kernels are built for 8192 at most;
/// a list beyond this is a slip, not a machine.
const GREATEST: u32 = 65_535;

/// Why a list of cores cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list of cores such as 0-3,8")]
pub struct CoreListError(String);

/// Reads a list of cores. The answer is in ascending order and names each core
/// once; an empty text is a list of none.
///
/// # Errors
///
/// If a part is neither a number nor a range from a lesser number to a greater
/// one.
pub fn parse(text: &str) -> Result<Vec<u32>, CoreListError> {
    let bad = || CoreListError(text.trim().to_owned());
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let number = part.parse::<u32>().ok().filter(|n| digits && *n <= GREATEST);
        number.ok_or_else(bad)
    };
    let mut cores = vec![];
    if text.trim().is_empty() {
        return Ok(cores);
    }
    for part in text.trim().split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(bad());
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

/// Writes a list of cores, in whatever order they come.
pub fn print(cores: &[u32]) -> String {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges = sorted.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u32::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_read_as_the_kernel_writes_them() {
        assert_eq!(parse("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse("5").unwrap(), [5]);
        assert_eq!(parse("\n").unwrap(), [0_u32; 0]);
        assert_eq!(parse("4-5,0-4").unwrap(), [0, 1, 2, 3, 4, 5], "in order, each once");
        assert_eq!(print(&[8, 3, 2, 1, 0, 3]), "0-3,8");
        assert_eq!(print(&[0, 1]), "0-1", "as the kernel writes two");
        assert_eq!(print(&[]), "");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in ["a", "1,", "3-1", "1-", "-1", "0x3", "1 2", "+1", "0-4294967295", "0-3:2/4"] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error.to_string(), format!("`{bad}` is not a list of cores such as 0-3,8"));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(cores in prop::collection::vec(0..300_u32, 0..60)) {
            let mut expected = cores.clone();
            expected.sort_unstable();
            expected.dedup();
            let text = print(&cores);
            prop_assert_eq!(parse(&text).unwrap(), expected);
            prop_assert_eq!(print(&parse(&text).unwrap()), text, "there is one way to write it");
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9, a]{0,12}") {
            if let Ok(cores) = parse(&text) {
                prop_assert!(cores.is_sorted_by(|a, b| a < b));
            }
        }
    }
}
