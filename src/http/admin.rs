//! `/api/admin/…`: what those who run the gateway see and do. Nothing here shows what is said in a
//! session: no prompt, no title, no answer. Every change leaves a row in the audit log.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

mod agents;
mod audit;
mod limits;
mod overview;
mod sessions;

use super::{AppState, connections, notices, users};

/// What may take longer than other requests.
pub(super) fn slow_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(agents::test))
}

/// The table of contents of this part of the API.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::show, users::change, users::remove))
        .routes(routes!(users::invite))
        .routes(routes!(notices::send))
        .routes(routes!(connections::list))
        .routes(routes!(connections::disconnect))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end))
        .routes(routes!(agents::list))
        .routes(routes!(audit::list))
        .routes(routes!(limits::show, limits::change))
        .routes(routes!(overview::show))
}
