//! `#[derive(Names)]`: the names of an enumeration's values, and the lookup by name.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr, Result};

/// The case of a name, named as serde names it.
#[derive(Clone, Copy, Default)]
enum Case {
    #[default]
    Snake,
    Kebab,
    ScreamingSnake,
}

impl Case {
    fn parse(written: &LitStr) -> Result<Self> {
        match written.value().as_str() {
            "snake_case" => Ok(Self::Snake),
            "kebab-case" => Ok(Self::Kebab),
            "SCREAMING_SNAKE_CASE" => Ok(Self::ScreamingSnake),
            _ => Err(Error::new_spanned(written, "no case that names are written in")),
        }
    }

    fn name_of(self, variant: &str) -> String {
        let mut snake = String::new();
        for letter in variant.chars() {
            if letter.is_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.extend(letter.to_lowercase());
        }
        match self {
            Self::Snake => snake,
            Self::Kebab => snake.replace('_', "-"),
            Self::ScreamingSnake => snake.to_uppercase(),
        }
    }
}

/// Returns the value of `#[names(KEY = "…")]`, if there is one.
fn attribute_value(attributes: &[Attribute], key: &str) -> Result<Option<LitStr>> {
    let mut said = None;
    for attribute in attributes.iter().filter(|one| one.path().is_ident("names")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident(key) {
                return Err(meta.error(format!("only `{key}` can stand here")));
            }
            said = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(said)
}

pub(crate) fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let kind = &input.ident;
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(kind, "only an enumeration has names"));
    };
    let case = attribute_value(&input.attrs, "rename_all")?;
    let case = case.as_ref().map(Case::parse).transpose()?.unwrap_or_default();
    let mut values: Vec<_> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "a variant with fields is no single value"));
        }
        let own = attribute_value(&variant.attrs, "rename")?.map(|name| name.value());
        let name = own.unwrap_or_else(|| case.name_of(&variant.ident.to_string()));
        if names.contains(&name) {
            return Err(Error::new_spanned(variant, format!("`{name}` is another variant's name")));
        }
        values.push(&variant.ident);
        names.push(name);
    }
    let count = values.len();
    Ok(quote! {
        #[automatically_derived]
        impl #kind {
            /// Every value.
            pub const ALL: [Self; #count] = [#(Self::#values),*];

            /// The value's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    #(Self::#values => #names),*
                }
            }

            /// The value with this name, if there is one.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        #[automatically_derived]
        impl ::std::fmt::Display for #kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::written_by;

    fn written(input: TokenStream) -> String {
        written_by(implement, input)
    }

    #[test]
    fn a_name_is_the_variants_word_or_what_it_says() {
        let text = written(quote! {
            enum E { LowCompute, #[names(rename = "self")] Own, A1 }
        });
        for arm in ["Self::LowCompute=>\"low_compute\"", "Self::Own=>\"self\"", "Self::A1=>\"a1\""]
        {
            assert!(text.contains(arm), "{arm} in {text}");
        }
        assert!(text.contains("ALL:[Self;3usize]=[Self::LowCompute,Self::Own,Self::A1]"), "{text}");
        for (case, name) in [("kebab-case", "low-compute"), ("SCREAMING_SNAKE_CASE", "LOW_COMPUTE")]
        {
            let text = written(quote! { #[names(rename_all = #case)] enum E { LowCompute } });
            assert!(text.contains(&format!("Self::LowCompute=>\"{name}\"")), "{text}");
        }
    }

    #[test]
    fn what_has_no_names_is_refused() {
        for (input, fault) in [
            (
                quote!(
                    struct S;
                ),
                "only an enumeration",
            ),
            (
                quote!(
                    enum E {
                        A(u8),
                    }
                ),
                "with fields",
            ),
            (
                quote!(
                    enum E {
                        A,
                        #[names(rename = "a")]
                        B,
                    }
                ),
                "`a` is another variant's name",
            ),
            (
                quote!(
                    #[names(rename_all = "Title")]
                    enum E {
                        A,
                    }
                ),
                "no case",
            ),
            (
                quote!(
                    enum E {
                        #[names(rename_all = "a")]
                        A,
                    }
                ),
                "only `rename` can stand here",
            ),
        ] {
            let text = written(input);
            assert!(text.starts_with("refused: ") && text.contains(fault), "{text}");
        }
    }
}
