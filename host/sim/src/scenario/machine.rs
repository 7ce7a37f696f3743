//! Node lines into machines.

use super::lex::Fields;
use super::selectors;
use crater_model::{CardSpec, FieldError, Links, NodeSpec, parse};

/// Puts fields onto a description. A field that is not named stays as it is.
pub fn describe(spec: &mut NodeSpec, fields: &Fields) -> Result<(), FieldError> {
    for (key, value) in &fields.0 {
        match key.as_str() {
            "cpu" => spec.cpu = parse::cpu("cpu", value)?,
            "memory" => spec.memory = parse::memory("memory", value)?,
            "disk" => spec.disk = parse::bandwidth("disk", value)?,
            "iops" => spec.iops = parse::iops("iops", value)?,
            "members" => {
                spec.members = parse::integer("members", value, 0, u64::from(u32::MAX))? as u32;
            }
            "cards" => (spec.cards, spec.links) = cards(value)?,
            "labels" => spec.labels = selectors::labels("labels", value)?,
            "taints" => spec.taints = selectors::taints("taints", value)?,
            "domain" => spec.domain = value.as_str().into(),
            "zone" => spec.zone = value.as_str().into(),
            "cordoned" => spec.cordoned = parse::flag("cordoned", value)?,
            _ => {
                let expected = "a field of a node: cpu, memory, disk, iops, members, cards, labels, \
                                taints, domain, zone or cordoned";
                return Err(FieldError::new(key, value, expected));
            }
        }
    }
    Ok(())
}

/// `2xA100:80Gi`, `4xH100:80Gi:numa(0):link(0),4xH100:80Gi:numa(1)`.
fn cards(text: &str) -> Result<(Vec<CardSpec>, Links), FieldError> {
    let (mut cards, mut groups) = (vec![], vec![]);
    for part in text.split(',').filter(|part| *part != "none") {
        let (count, card, link) = group(part)?;
        for _ in 0..count {
            cards.push(card.clone());
            groups.push(link);
        }
    }
    if cards.len() > 255 {
        return Err(FieldError::new("cards", text, "at most 255 cards"));
    }
    if groups.iter().all(Option::is_none) {
        return Ok((cards, Links::default()));
    }
    // A card without a link has a group to itself.
    let own = (0u16..).map(|i| 1000 + i);
    let groups = groups.into_iter().zip(own).map(|(link, own)| link.unwrap_or(own)).collect();
    Ok((cards, Links { groups, bandwidth: vec![] }))
}

fn group(part: &str) -> Result<(usize, CardSpec, Option<u16>), FieldError> {
    let expected = "cards, such as 2xA100:80Gi or 4xH100:80Gi:numa(0):link(0)";
    let refused = || FieldError::new("cards", part, expected);
    let mut pieces = part.split(':');
    let head = pieces.next().unwrap_or_default();
    let (count, model) = match head.split_once('x') {
        Some((n, model)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
            (parse::integer("cards", n, 0, 255)? as usize, model)
        }
        _ => (1, head),
    };
    let memory = pieces.next().ok_or_else(refused)?;
    if model.is_empty() {
        return Err(refused());
    }
    let mut card = CardSpec::new(model, parse::memory("cards", memory)?);
    let mut link = None;
    for option in pieces {
        let (name, inner) = match option.split_once('(') {
            Some((name, inner)) => (name, Some(inner.strip_suffix(')').ok_or_else(refused)?)),
            None => (option, None),
        };
        match (name, inner) {
            ("numa", Some(n)) => card.numa = Some(small("numa", n)?),
            ("link", Some(n)) => link = Some(small("link", n)?),
            ("slice", Some(n)) => card.slice = Some(parse::memory("slice", n)?),
            ("sick", None) => card.healthy = false,
            ("mig", instances) => card.mig = card.cut(instances.map(|list| list.split('+')))?,
            _ => {
                return Err(FieldError::new(
                    "cards",
                    option,
                    "numa(N), link(N), slice(SIZE), mig, mig(PROFILE@START+…) or sick",
                ));
            }
        }
    }
    Ok((count, card, link))
}

fn small(field: &str, text: &str) -> Result<u16, FieldError> {
    parse::integer(field, text, 0, 999).map(|n| n as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::{Mib, MigMode, MilliCores};

    fn node(words: &[&str]) -> Result<NodeSpec, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let mut spec = NodeSpec::new("n1", MilliCores::ZERO, Mib::ZERO);
        let fields = Fields::parse(&words)?;
        describe(&mut spec, &fields).and_then(|()| spec.check()).map_err(|e| e.to_string())?;
        Ok(spec)
    }

    #[test]
    fn cards_are_read_in_groups() {
        let spec = node(&[
            "cpu=64",
            "cards=2xA100:80Gi:mig,1xA100:40Gi:mig(2g.10gb@0+1g.5gb@6),T4:15Gi:sick:numa(1)",
        ])
        .unwrap();
        assert_eq!((spec.cpu, spec.cards.len()), (MilliCores(64_000), 4));
        assert!(matches!(spec.cards[1].mig, MigMode::Free(_)));
        assert!(
            matches!(&spec.cards[2].mig, MigMode::Fixed { instances, .. } if instances.len() == 2)
        );
        let t4 = &spec.cards[3];
        assert_eq!((&*t4.model, t4.numa, t4.healthy), ("T4", Some(1), false));
        assert_eq!(spec.links, Links::default());
    }

    #[test]
    fn cards_without_a_link_are_linked_to_none() {
        let spec = node(&["cards=2xH100:80Gi:link(0),2xH100:80Gi"]).unwrap();
        let groups: Vec<_> = (0..4).map(|c| spec.links.group(c)).collect();
        assert_eq!(groups, [Some(0), Some(0), None, None]);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_field() {
        for (word, names) in [
            ("cards=A100", "cards"),
            ("cards=2xA100:80GB", "cards"),
            ("cards=A100:40Gi:mig(9g@0)", "mig"),
            ("cards=T4:15Gi:mig", "mig"),
            ("cpu=-1", "cpu"),
            ("gpus=2", "gpus"),
        ] {
            assert!(node(&[word]).unwrap_err().contains(names), "{word}");
        }
    }
}
