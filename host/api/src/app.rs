//! What all handlers share.

use crate::auth::Tokens;
use crate::hub::Hub;
use crater_server::System;
use crater_store::{Reader, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Shared by all handlers. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The running system.
    pub system: Arc<System>,
    /// Tokens.
    pub tokens: Arc<Tokens>,
    /// Changes of jobs.
    pub hub: Arc<Hub>,
    /// Held by whoever copies the whole store.
    pub copying: Arc<Semaphore>,
    readers: Arc<Mutex<Vec<Reader>>>,
}

/// Readers that wait to be used again.
const READERS: usize = 8;

impl App {
    /// Around a running system.
    pub fn new(system: Arc<System>) -> Self {
        let copying = Arc::new(Semaphore::new(1));
        let hub = Hub::start(&system);
        Self { system, tokens: Arc::default(), hub, copying, readers: Arc::default() }
    }

    /// A reader of what is durable; goes back when it is dropped.
    pub fn reader(&self) -> Result<Borrowed, StoreError> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = match kept {
            Some(reader) => reader,
            None => self.system.reader()?,
        };
        Ok(Borrowed { reader: Some(reader), home: self.readers.clone() })
    }

    /// Looks something up in the history, off the threads that serve requests.
    pub async fn look<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, crate::problem::Problem> {
        let app = self.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let reader = app.reader()?;
            look(&reader)
        });
        match looked.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(crate::problem::Problem::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "store",
                "the history cannot be read; try again",
            )),
        }
    }
}

/// A reader for a while.
pub struct Borrowed {
    reader: Option<Reader>,
    home: Arc<Mutex<Vec<Reader>>>,
}

impl std::ops::Deref for Borrowed {
    type Target = Reader;
    fn deref(&self) -> &Reader {
        self.reader.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let mut home = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = self.reader.take()
            && home.len() < READERS
        {
            home.push(reader);
        }
    }
}
