PRAGMA user_version=18;
CREATE TABLE config_machine_state (
      state_key TEXT NOT NULL PRIMARY KEY,
      value_json TEXT NOT NULL,
      updated_at_ms INTEGER NOT NULL
    ) STRICT;
INSERT INTO "config_machine_state" ("state_key","value_json","updated_at_ms") VALUES ('auth.sharedStore','{"location":"state-db"}',1795075678756);
INSERT INTO "config_machine_state" ("state_key","value_json","updated_at_ms") VALUES ('plugins.installedIndex','{"revision":1,"index":{"generatedAtMs":1,"plugins":[]}}',1795075679294);
INSERT INTO "config_machine_state" ("state_key","value_json","updated_at_ms") VALUES ('webPush.vapidKeys','{"publicKey":"BK27ZspdFhOtNq9f_5rYX4xHudB1M0yyY03zdMIcQQUOKacFwW6rsFL58g3kIf8h0qXfy4g-WL4PLYalbWyVqXI","privateKey":"lab","subject":"https://openclaw.ai"}',1795075716485);
CREATE TABLE worker_turn_tool_authorities (
  session_id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL,
  owner_epoch INTEGER NOT NULL CHECK (owner_epoch >= 1),
  placement_generation INTEGER NOT NULL CHECK (placement_generation >= 0),
  claim_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  tool_names_json TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES worker_session_placements(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE worker_session_tool_operations (
  source_session_id TEXT NOT NULL,
  source_claim_id TEXT NOT NULL,
  tool_call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL CHECK (tool_name IN ('sessions_spawn', 'sessions_send')),
  request_digest TEXT NOT NULL,
  operation_seed TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'unknown')),
  child_session_key TEXT,
  result_json TEXT,
  gateway_instance_id TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (source_session_id, source_claim_id, tool_call_id),
  FOREIGN KEY (source_session_id)
    REFERENCES worker_session_placements(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE mcp_oauth_stores (
  store_key TEXT NOT NULL PRIMARY KEY,
  format_version INTEGER NOT NULL CHECK (format_version = 1),
  store_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE diagnostic_events (
  scope TEXT NOT NULL,
  event_key TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  sequence INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, event_key)
) STRICT;
INSERT INTO "diagnostic_events" ("scope","event_key","payload_json","created_at","sequence") VALUES ('config-snapshot','latest','{"configPath":"/home/ann/.openclaw/openclaw.json","rawHash":"2711e14ceb3774d2cc655081fb3a15707bbeb08d531d3b12d34c97ed0c54b859","fingerprintedAuthoredConfig":{"gateway":{"mode":"fp:db98e97ccd5c","bind":"fp:3b300e13a969","port":"fp:7741159e4416","auth":{"mode":"fp:2690477d61ca","token":"fp:d31ef932fa39"}},"models":{"mode":"fp:5052cadda066","providers":{"stub":{"baseUrl":"fp:ad8fe28c004b","apiKey":"fp:184495220100","api":"fp:36040ffebc29","models":[{"id":"fp:46bb151c982e","name":"fp:5e695915ac3a","reasoning":"fp:f404234afeb0","input":["fp:4a372971f6e2"],"cost":{"input":"fp:05bb560f9133","output":"fp:05bb560f9133","cacheRead":"fp:05bb560f9133","cacheWrite":"fp:05bb560f9133"},"contextWindow":"fp:7fa12757b4c8","maxTokens":"fp:8d1b49729742"}]}}},"agents":{"defaults":{"model":{"primary":"fp:0c60072e66ed"},"skipBootstrap":"fp:f404234afeb0","heartbeat":{"every":"fp:91584921ca4a"}}},"tools":{"exec":{"security":"fp:79a1671cd900","ask":"fp:cc1485e0002a"}}}}',1795077027635,1);
CREATE TABLE skill_usage (
  skill_file TEXT NOT NULL PRIMARY KEY,
  skill_key TEXT NOT NULL,
  skill_name TEXT NOT NULL,
  skill_source TEXT NOT NULL,
  first_used_at_ms INTEGER NOT NULL,
  last_used_at_ms INTEGER NOT NULL,
  use_count INTEGER NOT NULL,
  last_agent_id TEXT
) STRICT;
CREATE TABLE skill_workshop_proposals (
  proposal_id TEXT NOT NULL PRIMARY KEY,
  record_json TEXT NOT NULL,
  owner_agent_id TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('create', 'update')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'applied', 'rejected', 'quarantined', 'stale')),
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  draft_hash TEXT NOT NULL,
  origin_agent_id TEXT,
  origin_session_key TEXT,
  origin_run_id TEXT,
  origin_message_id TEXT,
  applied_at TEXT,
  rejected_at TEXT,
  quarantined_at TEXT,
  stale_at TEXT,
  status_reason TEXT
) STRICT;
CREATE TABLE skill_workshop_collection_reviews (
  review_id TEXT NOT NULL PRIMARY KEY,
  owner_agent_id TEXT NOT NULL,
  backup_id TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  kept_names_json TEXT NOT NULL,
  written_names_json TEXT NOT NULL,
  dropped_json TEXT NOT NULL
) STRICT;
CREATE TABLE skill_workshop_proposal_rollbacks (
  proposal_id TEXT NOT NULL PRIMARY KEY,
  written_at TEXT NOT NULL,
  target_skill_file TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('create', 'update')),
  previous_content_hash TEXT,
  previous_content TEXT,
  support_files_json TEXT,
  FOREIGN KEY (proposal_id) REFERENCES skill_workshop_proposals(proposal_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE skill_workshop_proposal_events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  proposal_id TEXT NOT NULL,
  proposed_version TEXT NOT NULL,
  revision_hash TEXT NOT NULL,
  event_type TEXT NOT NULL CHECK (event_type IN (
    'created',
    'revised',
    'evaluation_completed',
    'applied',
    'rejected',
    'quarantined',
    'stale'
  )),
  occurred_at TEXT NOT NULL,
  actor_json TEXT NOT NULL,
  correlation_id TEXT,
  payload_json TEXT,
  FOREIGN KEY (proposal_id) REFERENCES skill_workshop_proposals(proposal_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE audit_events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  source_id TEXT NOT NULL UNIQUE,
  schema_version INTEGER NOT NULL DEFAULT 1,
  source_sequence INTEGER NOT NULL,
  occurred_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  action TEXT NOT NULL,
  status TEXT NOT NULL,
  error_code TEXT,
  actor_type TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  agent_id TEXT,
  session_key TEXT,
  session_id TEXT,
  run_id TEXT,
  tool_call_id TEXT,
  tool_name TEXT,
  direction TEXT,
  channel TEXT,
  conversation_kind TEXT,
  message_outcome TEXT,
  reason_code TEXT,
  delivery_kind TEXT,
  failure_stage TEXT,
  duration_ms INTEGER,
  result_count INTEGER,
  account_ref TEXT,
  conversation_ref TEXT,
  message_ref TEXT,
  target_ref TEXT
) STRICT;
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (1,'52f58f36-a2a9-4071-a839-8c0c08bb2f00','65697e3f3d744987ac52ef6449ba0a01:3:1795075709924:agent.run.started',1,3,1795075709924,'agent_run','agent.run.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','65697e3f3d744987ac52ef6449ba0a01',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (2,'36a44de9-db17-4a7c-8e23-4a424a386d02','65697e3f3d744987ac52ef6449ba0a01:10:1795075711127:agent.run.finished',1,10,1795075711127,'agent_run','agent.run.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','65697e3f3d744987ac52ef6449ba0a01',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (3,'252a9801-538b-474f-ab37-50a06930fbef','a5eac5addc5743cf8913385c147092bd:3:1795075715519:agent.run.started',1,3,1795075715519,'agent_run','agent.run.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a5eac5addc5743cf8913385c147092bd',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (4,'db5f3315-c9f7-428f-8fa9-e5d506bd675d','a5eac5addc5743cf8913385c147092bd:1:1795075715927:tool.action.started',1,1,1795075715927,'tool_action','tool.action.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a5eac5addc5743cf8913385c147092bd','sha256:f394cbbf8f51edd3a21cab3566cacf75404b1d1fd24d9cfade7f4bf34fd9b4fa','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (5,'3e6b9e81-ad0b-4ed1-bbed-f3a5a6baa1f0','a5eac5addc5743cf8913385c147092bd:2:1795075716609:tool.action.finished',1,2,1795075716609,'tool_action','tool.action.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a5eac5addc5743cf8913385c147092bd','sha256:f394cbbf8f51edd3a21cab3566cacf75404b1d1fd24d9cfade7f4bf34fd9b4fa','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (6,'ee2bd064-542a-4e19-a360-74622ca98fca','a5eac5addc5743cf8913385c147092bd:22:1795075717774:agent.run.finished',1,22,1795075717774,'agent_run','agent.run.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a5eac5addc5743cf8913385c147092bd',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (7,'7b2ee9fd-39b1-497f-8bc2-cb1bb03ab79e','4f17f0e2b00e41078af2848a2d7df506:3:1795077052382:agent.run.started',1,3,1795077052382,'agent_run','agent.run.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4f17f0e2b00e41078af2848a2d7df506',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (8,'0e5aaaba-8ce6-47a2-988e-416249a86b8e','4f17f0e2b00e41078af2848a2d7df506:1:1795077052695:tool.action.started',1,1,1795077052695,'tool_action','tool.action.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4f17f0e2b00e41078af2848a2d7df506','sha256:bc7dee67e0f16bf3b65d1006350ffc26f86c335e391932625b7be9088052dd67','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (9,'c4992e74-0d4f-4158-a63d-66425c2aea22','4f17f0e2b00e41078af2848a2d7df506:2:1795077054407:tool.action.finished',1,2,1795077054407,'tool_action','tool.action.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4f17f0e2b00e41078af2848a2d7df506','sha256:bc7dee67e0f16bf3b65d1006350ffc26f86c335e391932625b7be9088052dd67','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (10,'1b9410c7-e139-442b-beea-c064dc6e9668','4f17f0e2b00e41078af2848a2d7df506:22:1795077056514:agent.run.finished',1,22,1795077056514,'agent_run','agent.run.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4f17f0e2b00e41078af2848a2d7df506',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (11,'60ed5cce-39e4-4ba8-8824-029726474851','1c1a5aa46a81439797338e3cd30a4c6e:3:1795077062999:agent.run.started',1,3,1795077062999,'agent_run','agent.run.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','1c1a5aa46a81439797338e3cd30a4c6e',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (12,'ddf17ca8-3b75-4d04-8499-a09a65939706','1c1a5aa46a81439797338e3cd30a4c6e:3:1795077063190:tool.action.started',1,3,1795077063190,'tool_action','tool.action.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','1c1a5aa46a81439797338e3cd30a4c6e','sha256:8585402b936194935f14155aa790440cf5fb907e98a27290bad855dec893e8a9','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (13,'6ff0909c-db4a-40bc-aec0-dfda4def1483','1c1a5aa46a81439797338e3cd30a4c6e:4:1795077063895:tool.action.finished',1,4,1795077063895,'tool_action','tool.action.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','1c1a5aa46a81439797338e3cd30a4c6e','sha256:8585402b936194935f14155aa790440cf5fb907e98a27290bad855dec893e8a9','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (14,'0e14c222-8ede-4b03-8d48-5598ec6475b7','1c1a5aa46a81439797338e3cd30a4c6e:22:1795077064670:agent.run.finished',1,22,1795077064670,'agent_run','agent.run.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','1c1a5aa46a81439797338e3cd30a4c6e',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (15,'363ca786-934e-4062-b5bd-0c6635cbf269','0b31ac4c71614b4da1d57e71721d8ffc:3:1795077068409:agent.run.started',1,3,1795077068409,'agent_run','agent.run.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','0b31ac4c71614b4da1d57e71721d8ffc',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (16,'da8d58e7-e071-4d8c-b690-56afcd2b6ad2','0b31ac4c71614b4da1d57e71721d8ffc:5:1795077068516:tool.action.started',1,5,1795077068516,'tool_action','tool.action.started','started',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','0b31ac4c71614b4da1d57e71721d8ffc','sha256:489dc703ebcf92002138466e9a8dd5029d933253a404397ff1b6fe07cc763fbd','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (17,'c64df88a-37c1-4976-9a8a-36d52213702c','0b31ac4c71614b4da1d57e71721d8ffc:6:1795077068659:tool.action.finished',1,6,1795077068659,'tool_action','tool.action.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','0b31ac4c71614b4da1d57e71721d8ffc','sha256:489dc703ebcf92002138466e9a8dd5029d933253a404397ff1b6fe07cc763fbd','exec',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "audit_events" ("sequence","event_id","source_id","schema_version","source_sequence","occurred_at","kind","action","status","error_code","actor_type","actor_id","agent_id","session_key","session_id","run_id","tool_call_id","tool_name","direction","channel","conversation_kind","message_outcome","reason_code","delivery_kind","failure_stage","duration_ms","result_count","account_ref","conversation_ref","message_ref","target_ref") VALUES (18,'e7bfdf64-d383-4c32-b871-75a96419c8b2','0b31ac4c71614b4da1d57e71721d8ffc:22:1795077068746:agent.run.finished',1,22,1795077068746,'agent_run','agent.run.finished','succeeded',NULL,'agent','main','main','agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','0b31ac4c71614b4da1d57e71721d8ffc',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE audit_identity_keys (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  key_id TEXT NOT NULL,
  key BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE config_revision_keys (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  hmac_key BLOB NOT NULL CHECK (length(hmac_key) = 32)
) STRICT;
INSERT INTO "config_revision_keys" ("id","hmac_key") VALUES (1,x'c4295290c773e0d64bd430c508e4738c08e83518452c7f5cf7ba1c0f60dd5105');
CREATE TABLE session_state_events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  dedupe_key TEXT UNIQUE,
  session_key TEXT NOT NULL,
  session_id TEXT,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  actor_type TEXT NOT NULL,
  actor_id TEXT,
  run_id TEXT,
  occurred_at INTEGER NOT NULL,
  summary TEXT NOT NULL,
  payload_json TEXT
) STRICT;
CREATE TABLE session_state_heads (
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  last_sequence INTEGER NOT NULL,
  pruned_max_sequence INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (session_key, agent_id)
) STRICT;
CREATE TABLE session_watch_cursors (
  watcher_session_key TEXT NOT NULL,
  watcher_store_path TEXT,
  target_session_key TEXT NOT NULL,
  last_seen_sequence INTEGER NOT NULL DEFAULT 0,
  notified_sequence INTEGER NOT NULL DEFAULT 0,
  material_sequence INTEGER NOT NULL DEFAULT 0,
  provenance TEXT NOT NULL DEFAULT 'explicit' CHECK (provenance IN ('explicit', 'ambient-group')),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (watcher_session_key, target_session_key)
) STRICT;
CREATE TABLE session_upstream_links (
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  catalog_id TEXT NOT NULL,
  host_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  upstream_kind TEXT NOT NULL,
  upstream_ref_json TEXT,
  last_marker_json TEXT,
  last_scanned_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- (session_key, agent_id) composite identity: under session.scope="global" agents
  -- share bare keys; a key-only row would let one agent overwrite another's upstream.
  PRIMARY KEY (session_key, agent_id)
) STRICT;
CREATE TABLE state_leases (
  scope TEXT NOT NULL,
  lease_key TEXT NOT NULL,
  owner TEXT NOT NULL,
  expires_at INTEGER,
  heartbeat_at INTEGER,
  payload_json TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (scope, lease_key)
) STRICT;
CREATE TABLE exec_approvals_config (
  config_key TEXT NOT NULL PRIMARY KEY,
  raw_json TEXT NOT NULL,
  socket_path TEXT,
  has_socket_token INTEGER NOT NULL,
  default_security TEXT,
  default_ask TEXT,
  default_ask_fallback TEXT,
  auto_allow_skills INTEGER,
  agent_count INTEGER NOT NULL,
  allowlist_count INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "exec_approvals_config" ("config_key","raw_json","socket_path","has_socket_token","default_security","default_ask","default_ask_fallback","auto_allow_skills","agent_count","allowlist_count","updated_at_ms") VALUES ('current','{"version":1,"socket":{"path":"/home/ann/.openclaw/exec-approvals.sock","token":"7h7EiJEFovjeWMviYnk8Q5iJqtIDwLDE"},"defaults":{},"agents":{}}','/home/ann/.openclaw/exec-approvals.sock',1,NULL,NULL,NULL,NULL,0,0,1795075716055);
CREATE TABLE operator_approvals (
  approval_id TEXT NOT NULL PRIMARY KEY CHECK (
    length(approval_id) > 0 AND approval_id NOT IN ('.', '..')
  ),
  resolution_ref TEXT NOT NULL CHECK (
    length(resolution_ref) = 43 AND resolution_ref NOT GLOB '*[^A-Za-z0-9_-]*'
  ),
  kind TEXT NOT NULL CHECK (kind IN ('exec', 'plugin', 'system-agent')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'allowed', 'denied', 'expired', 'cancelled')),
  presentation_json TEXT NOT NULL,
  requested_by_device_id TEXT,
  requested_by_client_id TEXT,
  requested_by_device_token_auth INTEGER NOT NULL DEFAULT 0,
  reviewer_device_ids_json TEXT NOT NULL,
  source_agent_id TEXT,
  source_session_key TEXT,
  source_session_id TEXT,
  source_run_id TEXT,
  source_tool_call_id TEXT,
  source_tool_name TEXT,
  audience_session_keys_json TEXT NOT NULL,
  runtime_epoch TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  decision TEXT CHECK (decision IN ('allow-once', 'allow-always', 'deny')),
  terminal_reason TEXT CHECK (
    terminal_reason IN (
      'user',
      'timeout',
      'malformed-verdict',
      'no-route',
      'run-aborted',
      'gateway-restart',
      'storage-corrupt'
    )
  ),
  resolved_at_ms INTEGER,
  resolver_kind TEXT CHECK (resolver_kind IN ('device', 'channel', 'runtime', 'system')),
  resolver_id TEXT,
  consumed_at_ms INTEGER,
  consumed_by TEXT,
  CHECK (expires_at_ms >= created_at_ms),
  CHECK (updated_at_ms >= created_at_ms),
  CHECK (resolved_at_ms IS NULL OR resolved_at_ms >= created_at_ms),
  CHECK (resolved_at_ms IS NULL OR resolved_at_ms <= updated_at_ms),
  CHECK (consumed_at_ms IS NULL OR consumed_at_ms >= resolved_at_ms),
  CHECK (consumed_at_ms IS NULL OR consumed_at_ms <= updated_at_ms),
  CHECK (requested_by_device_token_auth IN (0, 1)),
  CHECK (
    (
      status = 'pending'
      AND decision IS NULL
      AND terminal_reason IS NULL
      AND resolved_at_ms IS NULL
      AND resolver_kind IS NULL
      AND resolver_id IS NULL
      AND consumed_at_ms IS NULL
      AND consumed_by IS NULL
    )
    OR (
      status = 'allowed'
      AND decision IN ('allow-once', 'allow-always')
      AND terminal_reason = 'user'
      AND resolved_at_ms IS NOT NULL
      AND resolver_kind IS NOT NULL
    )
    OR (
      status = 'denied'
      AND decision = 'deny'
      AND terminal_reason IN ('user', 'malformed-verdict', 'no-route', 'storage-corrupt')
      AND resolved_at_ms IS NOT NULL
      AND resolver_kind IS NOT NULL
      AND consumed_at_ms IS NULL
      AND consumed_by IS NULL
    )
    OR (
      status = 'expired'
      AND decision = 'deny'
      AND terminal_reason = 'timeout'
      AND resolved_at_ms IS NOT NULL
      AND resolver_kind IS NOT NULL
      AND consumed_at_ms IS NULL
      AND consumed_by IS NULL
    )
    OR (
      status = 'cancelled'
      AND decision = 'deny'
      AND terminal_reason IN ('run-aborted', 'gateway-restart')
      AND resolved_at_ms IS NOT NULL
      AND resolver_kind IS NOT NULL
      AND consumed_at_ms IS NULL
      AND consumed_by IS NULL
    )
  ),
  CHECK (
    (consumed_at_ms IS NULL AND consumed_by IS NULL)
    OR (
      status = 'allowed'
      AND decision = 'allow-once'
      AND consumed_at_ms IS NOT NULL
      AND consumed_by IS NOT NULL
    )
  )
) STRICT;
INSERT INTO "operator_approvals" ("approval_id","resolution_ref","kind","status","presentation_json","requested_by_device_id","requested_by_client_id","requested_by_device_token_auth","reviewer_device_ids_json","source_agent_id","source_session_key","source_session_id","source_run_id","source_tool_call_id","source_tool_name","audience_session_keys_json","runtime_epoch","created_at_ms","expires_at_ms","updated_at_ms","decision","terminal_reason","resolved_at_ms","resolver_kind","resolver_id","consumed_at_ms","consumed_by") VALUES ('d1d5e10d-f4ef-443e-af83-4f339595b37e','xkAiHC2M7TyK5QxHwqILBUGIe5herQ08bFy3-agm8wE','exec','allowed','{"kind":"exec","commandText":"echo 5","commandPreview":null,"warningText":null,"host":"gateway","nodeId":null,"agentId":"main","allowedDecisions":["allow-once","deny"]}',NULL,'gateway-client',0,'[]','main','agent:main:main',NULL,'a5eac5addc5743cf8913385c147092bd','call_9d2919ce1b7d',NULL,'["agent:main:main"]','ce7c507c-ff02-4594-a34e-862b6660dde9',1795075716150,1795077516150,1795075716276,'allow-once','user',1795075716276,'runtime','gateway-client',NULL,NULL);
INSERT INTO "operator_approvals" ("approval_id","resolution_ref","kind","status","presentation_json","requested_by_device_id","requested_by_client_id","requested_by_device_token_auth","reviewer_device_ids_json","source_agent_id","source_session_key","source_session_id","source_run_id","source_tool_call_id","source_tool_name","audience_session_keys_json","runtime_epoch","created_at_ms","expires_at_ms","updated_at_ms","decision","terminal_reason","resolved_at_ms","resolver_kind","resolver_id","consumed_at_ms","consumed_by") VALUES ('7398e741-73b7-4bbc-814d-1e4d7704770b','hj3ysR2sXq5UVBLiyIikxZtMFRspJAetntCEpJriySw','exec','allowed','{"kind":"exec","commandText":"echo 1","commandPreview":null,"warningText":null,"host":"gateway","nodeId":null,"agentId":"main","allowedDecisions":["allow-once","deny"]}',NULL,'gateway-client',0,'[]','main','agent:main:main',NULL,'4f17f0e2b00e41078af2848a2d7df506','call_d8035bcd9336',NULL,'["agent:main:main"]','8f0326c4-795b-4fc3-ba61-871a07da0813',1795077053161,1795078853161,1795077053238,'allow-once','user',1795077053238,'runtime','gateway-client',NULL,NULL);
INSERT INTO "operator_approvals" ("approval_id","resolution_ref","kind","status","presentation_json","requested_by_device_id","requested_by_client_id","requested_by_device_token_auth","reviewer_device_ids_json","source_agent_id","source_session_key","source_session_id","source_run_id","source_tool_call_id","source_tool_name","audience_session_keys_json","runtime_epoch","created_at_ms","expires_at_ms","updated_at_ms","decision","terminal_reason","resolved_at_ms","resolver_kind","resolver_id","consumed_at_ms","consumed_by") VALUES ('8027a315-543b-4edf-9753-48192888702f','SEcqdbtvPOeZbColSbUM_4NvKk5lD_V3hIlsCKGnKzw','exec','allowed','{"kind":"exec","commandText":"echo 2","commandPreview":null,"warningText":null,"host":"gateway","nodeId":null,"agentId":"main","allowedDecisions":["allow-once","deny"]}',NULL,'gateway-client',0,'[]','main','agent:main:main',NULL,'1c1a5aa46a81439797338e3cd30a4c6e','call_e9e40a9a909b',NULL,'["agent:main:main"]','8f0326c4-795b-4fc3-ba61-871a07da0813',1795077063378,1795078863378,1795077063662,'allow-once','user',1795077063662,'runtime','gateway-client',NULL,NULL);
INSERT INTO "operator_approvals" ("approval_id","resolution_ref","kind","status","presentation_json","requested_by_device_id","requested_by_client_id","requested_by_device_token_auth","reviewer_device_ids_json","source_agent_id","source_session_key","source_session_id","source_run_id","source_tool_call_id","source_tool_name","audience_session_keys_json","runtime_epoch","created_at_ms","expires_at_ms","updated_at_ms","decision","terminal_reason","resolved_at_ms","resolver_kind","resolver_id","consumed_at_ms","consumed_by") VALUES ('eda0417c-786c-43fc-9b04-a9ddc976bba0','kypsvrTDHwRl4nO_NRFBEks-6ImdohEQbtHNGCf8JQ4','exec','allowed','{"kind":"exec","commandText":"echo 3","commandPreview":null,"warningText":null,"host":"gateway","nodeId":null,"agentId":"main","allowedDecisions":["allow-once","deny"]}',NULL,'gateway-client',0,'[]','main','agent:main:main',NULL,'0b31ac4c71614b4da1d57e71721d8ffc','call_86fddb666c10',NULL,'["agent:main:main"]','8f0326c4-795b-4fc3-ba61-871a07da0813',1795077068526,1795078868526,1795077068580,'allow-once','user',1795077068580,'runtime','gateway-client',NULL,NULL);
CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "schema_meta" ("meta_key","role","schema_version","agent_id","app_version","created_at","updated_at") VALUES ('primary','global',18,NULL,'2026.9.6',1795075669077,1795075674328);
INSERT INTO "schema_meta" ("meta_key","role","schema_version","agent_id","app_version","created_at","updated_at") VALUES ('state-migrations','global',3,NULL,'a text of 188 letters',1795075679607,1795075679730);
INSERT INTO "schema_meta" ("meta_key","role","schema_version","agent_id","app_version","created_at","updated_at") VALUES ('startup-migrations','global',3,NULL,'a text of 188 letters',1795075679730,1795075679730);
CREATE TABLE device_pairing_pending (
  request_id TEXT NOT NULL PRIMARY KEY,
  device_id TEXT NOT NULL,
  public_key TEXT NOT NULL,
  display_name TEXT,
  platform TEXT,
  device_family TEXT,
  client_id TEXT,
  client_mode TEXT,
  browser_origin TEXT,
  role TEXT,
  roles_json TEXT,
  scopes_json TEXT,
  remote_ip TEXT,
  silent INTEGER,
  is_repair INTEGER,
  ts INTEGER NOT NULL,
  refreshed_at_ms INTEGER
) STRICT;
CREATE TABLE device_pairing_paired (
  device_id TEXT NOT NULL PRIMARY KEY,
  public_key TEXT NOT NULL,
  display_name TEXT,
  operator_label TEXT,
  platform TEXT,
  device_family TEXT,
  client_id TEXT,
  client_mode TEXT,
  browser_origin TEXT,
  role TEXT,
  roles_json TEXT,
  scopes_json TEXT,
  approved_scopes_json TEXT,
  remote_ip TEXT,
  tokens_json TEXT,
  approved_via TEXT,
  node_surface_json TEXT,
  pending_node_surface_json TEXT,
  created_at_ms INTEGER NOT NULL,
  approved_at_ms INTEGER NOT NULL,
  last_seen_at_ms INTEGER,
  last_seen_reason TEXT
) STRICT;
CREATE TABLE device_bootstrap_tokens (
  token_key TEXT NOT NULL PRIMARY KEY,
  token TEXT NOT NULL,
  setup_id TEXT,
  ts INTEGER NOT NULL,
  device_id TEXT,
  public_key TEXT,
  profile_json TEXT,
  redeemed_profile_json TEXT,
  pending_profile_json TEXT,
  issued_at_ms INTEGER NOT NULL,
  last_used_at_ms INTEGER
) STRICT;
CREATE TABLE device_pair_setup_completions (
  setup_id TEXT NOT NULL PRIMARY KEY,
  device_id TEXT NOT NULL,
  device_name TEXT,
  access TEXT NOT NULL,
  completed_at_ms INTEGER NOT NULL,
  delivery_state TEXT NOT NULL CHECK (delivery_state IN ('uncertain', 'confirmed')),
  retain_until_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE device_pairing_join_codes (
  shortcode TEXT,
  payload_json TEXT,
  created_at_ms INTEGER,
  expires_at_ms INTEGER
) STRICT;
CREATE TABLE device_identities (
  identity_key TEXT NOT NULL PRIMARY KEY,
  device_id TEXT NOT NULL,
  public_key_pem TEXT NOT NULL,
  private_key_pem TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "device_identities" ("identity_key","device_id","public_key_pem","private_key_pem","created_at_ms","updated_at_ms") VALUES ('primary','1ce23442f8f423a0cbf12ba89d9bf0038020e18606b3eeac1d3e573e9185a61f','a text of 113 letters','a private key of the lab',1795075687461,1795075687461);
CREATE TABLE device_auth_tokens (
  device_id TEXT NOT NULL,
  role TEXT NOT NULL,
  token TEXT NOT NULL,
  scopes_json TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (device_id, role)
) STRICT;
CREATE TABLE gateway_origin_device_tokens (
  gateway_scope TEXT NOT NULL,
  device_id TEXT NOT NULL,
  role TEXT NOT NULL,
  token TEXT NOT NULL,
  scopes_json TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (gateway_scope, device_id, role)
) STRICT;
CREATE TABLE macos_port_guardian_records (
  pid INTEGER NOT NULL PRIMARY KEY,
  port INTEGER NOT NULL,
  command TEXT NOT NULL,
  mode TEXT NOT NULL,
  timestamp REAL NOT NULL
) STRICT;
CREATE TABLE workspace_setup_state (
  workspace_key TEXT NOT NULL PRIMARY KEY,
  -- NULL only for attestation-only rows whose legacy source never recorded a
  -- path (orphan hashed-key attestations); setup rows always carry one.
  workspace_path TEXT,
  -- NULL setup columns mean an attestation-only row: replaceWorkspaceAttestation
  -- may record hashes before any setup milestone exists for the workspace.
  version INTEGER,
  bootstrap_seeded_at TEXT,
  setup_completed_at TEXT,
  updated_at INTEGER,
  attested_at_ms INTEGER,
  attestation_updated_at_ms INTEGER,
  CHECK (version IS NULL OR workspace_path IS NOT NULL)
) STRICT;
INSERT INTO "workspace_setup_state" ("workspace_key","workspace_path","version","bootstrap_seeded_at","setup_completed_at","updated_at","attested_at_ms","attestation_updated_at_ms") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','/home/ann/.openclaw/workspace',1,'2026-11-19T08:08:20.391Z',NULL,1795075700391,1795077066753,1795077066789);
CREATE TABLE workspace_path_aliases (
  alias_key TEXT NOT NULL PRIMARY KEY,
  alias_path TEXT NOT NULL,
  workspace_key TEXT NOT NULL,
  workspace_path TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "workspace_path_aliases" ("alias_key","alias_path","workspace_key","workspace_path","updated_at_ms") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','/home/ann/.openclaw/workspace','2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','/home/ann/.openclaw/workspace',1795075700391);
CREATE TABLE workspace_generated_bootstrap_hashes (
  workspace_key TEXT NOT NULL,
  filename TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (workspace_key, filename),
  FOREIGN KEY (workspace_key) REFERENCES workspace_setup_state(workspace_key) ON DELETE CASCADE
) STRICT;
INSERT INTO "workspace_generated_bootstrap_hashes" ("workspace_key","filename","sha256") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','AGENTS.md','1e17784e422c0e47e44c5214d0b37092f7b378bb2d3746976032be3075203c88');
INSERT INTO "workspace_generated_bootstrap_hashes" ("workspace_key","filename","sha256") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','IDENTITY.md','59b223766c8dd978162044e333a684c72e22af753d1ba3dc3bff4b2d915c54e2');
INSERT INTO "workspace_generated_bootstrap_hashes" ("workspace_key","filename","sha256") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','SOUL.md','4f9042f259b076e429d0f01ce39340030f47ea5b7f5befe306296c36baf1f60f');
INSERT INTO "workspace_generated_bootstrap_hashes" ("workspace_key","filename","sha256") VALUES ('2d268f9f7db5183fd033c8a0395c8e5982f0312977515df93504ae3c8ca42320','USER.md','46e0d8c937df7b104de97a23c58537292672654194879ca9f76b02075e022555');
CREATE TABLE native_hook_relay_bridges (
  relay_id TEXT NOT NULL PRIMARY KEY,
  pid INTEGER NOT NULL,
  hostname TEXT NOT NULL,
  port INTEGER NOT NULL,
  token TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE managed_outgoing_image_records (
  attachment_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  agent_id TEXT,
  message_id TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  retention_class TEXT,
  alt TEXT NOT NULL,
  original_media_root TEXT NOT NULL,
  original_media_id TEXT NOT NULL,
  original_media_subdir TEXT NOT NULL,
  original_content_type TEXT NOT NULL,
  original_width INTEGER,
  original_height INTEGER,
  original_size_bytes INTEGER,
  original_filename TEXT,
  record_json TEXT NOT NULL,
  cleanup_pending INTEGER NOT NULL DEFAULT 0 CHECK (cleanup_pending IN (0, 1))
) STRICT;
CREATE TABLE channel_pairing_requests (
  channel_key TEXT NOT NULL,
  account_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  code TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  meta_json TEXT,
  PRIMARY KEY (channel_key, account_id, request_id)
) STRICT;
CREATE TABLE channel_pairing_allow_entries (
  channel_key TEXT NOT NULL,
  account_id TEXT NOT NULL,
  entry TEXT NOT NULL,
  sort_order INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (channel_key, account_id, entry)
) STRICT;
CREATE TABLE web_push_subscriptions (
  endpoint_hash TEXT NOT NULL PRIMARY KEY,
  subscription_id TEXT NOT NULL UNIQUE,
  endpoint TEXT NOT NULL,
  p256dh TEXT NOT NULL,
  auth TEXT NOT NULL,
  device_id TEXT,
  user_profile_id TEXT,
  preferences_json TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE apns_registrations (
  node_id TEXT NOT NULL PRIMARY KEY,
  transport TEXT NOT NULL,
  token TEXT,
  relay_handle TEXT,
  send_grant TEXT,
  installation_id TEXT,
  relay_origin TEXT,
  topic TEXT NOT NULL,
  environment TEXT NOT NULL,
  distribution TEXT,
  token_debug_suffix TEXT,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE apns_registration_tombstones (
  node_id TEXT NOT NULL PRIMARY KEY,
  deleted_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE config_health_entries (
  config_path TEXT NOT NULL PRIMARY KEY,
  last_known_good_json TEXT,
  last_promoted_good_json TEXT,
  last_observed_suspicious_signature TEXT,
  updated_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "config_health_entries" ("config_path","last_known_good_json","last_promoted_good_json","last_observed_suspicious_signature","updated_at_ms") VALUES ('/home/ann/.openclaw/openclaw.json','{"hash":"2711e14ceb3774d2cc655081fb3a15707bbeb08d531d3b12d34c97ed0c54b859","bytes":686,"mtimeMs":1795075647082.5654,"ctimeMs":1795075647142.5571,"dev":"65024","ino":"2163274","mode":384,"nlink":1,"uid":0,"gid":0,"hasMeta":false,"gatewayMode":"local","observedAt":"2026-11-19T08:08:11.598Z"}',NULL,NULL,1795075691627);
CREATE TABLE clawhub_promotion_claims (
  slug TEXT NOT NULL PRIMARY KEY,
  provider TEXT,
  model_keys_json TEXT NOT NULL,
  ends_at_ms INTEGER NOT NULL,
  claimed_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE official_external_plugin_catalog_snapshots (
  feed_url TEXT NOT NULL PRIMARY KEY,
  body TEXT NOT NULL,
  status INTEGER NOT NULL,
  etag TEXT,
  last_modified TEXT,
  checksum TEXT NOT NULL,
  saved_at TEXT NOT NULL,
  trust_mode TEXT,
  trust_key_id TEXT,
  trust_signature_count INTEGER,
  trust_threshold INTEGER,
  trust_verified_at TEXT,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE gateway_restart_sentinel (
  sentinel_key TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  ts INTEGER NOT NULL,
  session_key TEXT,
  thread_id TEXT,
  delivery_channel TEXT,
  delivery_to TEXT,
  delivery_account_id TEXT,
  message TEXT,
  continuation_json TEXT,
  doctor_hint TEXT,
  stats_json TEXT,
  payload_json TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE gateway_restart_intent (
  intent_key TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  pid INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  reason TEXT,
  force INTEGER,
  wait_ms INTEGER,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE gateway_restart_handoff (
  handoff_key TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  intent_id TEXT NOT NULL,
  pid INTEGER NOT NULL,
  process_instance_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  reason TEXT,
  restart_trace_started_at INTEGER,
  restart_trace_last_at INTEGER,
  source TEXT NOT NULL,
  restart_kind TEXT NOT NULL,
  supervisor_mode TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE gateway_boot_lifecycle (
  boot_id TEXT NOT NULL PRIMARY KEY,
  pid INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER,
  outcome TEXT,
  startup_reason TEXT,
  reason TEXT
) STRICT;
INSERT INTO "gateway_boot_lifecycle" ("boot_id","pid","started_at_ms","completed_at_ms","outcome","startup_reason","reason") VALUES ('a5f8e6d9-a1d3-4230-bdb3-22380d8fba21',30903,1795075681589,1795075745029,'clean_stop',NULL,'stop (SIGTERM)');
INSERT INTO "gateway_boot_lifecycle" ("boot_id","pid","started_at_ms","completed_at_ms","outcome","startup_reason","reason") VALUES ('62ca8499-1617-4fa6-995c-c19ba5654825',29932,1795077001743,1795077085525,'clean_stop',NULL,'stop (SIGTERM)');
CREATE TABLE acp_sessions (
  session_key TEXT NOT NULL PRIMARY KEY,
  session_id TEXT,
  backend TEXT NOT NULL,
  agent TEXT NOT NULL,
  runtime_session_name TEXT NOT NULL,
  identity_json TEXT,
  mode TEXT NOT NULL,
  runtime_options_json TEXT,
  cwd TEXT,
  state TEXT NOT NULL,
  last_activity_at INTEGER NOT NULL,
  last_error TEXT,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE acp_replay_sessions (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  cwd TEXT NOT NULL,
  complete INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  next_seq INTEGER NOT NULL,
  -- Running estimate of this session's ledger footprint (row overhead plus
  -- all event rows), maintained at insert/trim so budget checks never scan
  -- acp_replay_events (#100622).
  estimated_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE acp_replay_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  session_key TEXT NOT NULL,
  run_id TEXT,
  update_json TEXT NOT NULL,
  estimated_bytes INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES acp_replay_sessions(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE agent_databases (
  agent_id TEXT NOT NULL,
  path TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  size_bytes INTEGER,
  PRIMARY KEY (agent_id, path)
) STRICT;
INSERT INTO "agent_databases" ("agent_id","path","schema_version","last_seen_at","size_bytes") VALUES ('main','agents/main/agent/openclaw-agent.sqlite',23,1795077014610,794624);
CREATE TABLE agent_deletion_journal (
  agent_id TEXT PRIMARY KEY,
  operation_id TEXT NOT NULL DEFAULT '',
  agent_dir TEXT NOT NULL,
  workspace_dir TEXT NOT NULL,
  sessions_dir TEXT NOT NULL,
  database_paths_json TEXT NOT NULL DEFAULT '[]',
  cleanup_paths_json TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  cleanup_completed INTEGER NOT NULL DEFAULT 0,
  delete_files INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE agent_provenance (
  agent_id TEXT PRIMARY KEY,
  created_via TEXT NOT NULL CHECK (created_via IN ('operator', 'agent', 'claw')),
  creator_agent_id TEXT,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE agent_database_leases (
  lease_id TEXT PRIMARY KEY,
  agent_id TEXT NOT NULL,
  path TEXT NOT NULL,
  owner_pid INTEGER NOT NULL,
  owner_start_time INTEGER,
  opened_at INTEGER NOT NULL
) STRICT;
CREATE TABLE plugin_state_entries (
  plugin_id TEXT NOT NULL,
  namespace TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  value_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (plugin_id, namespace, entry_key)
) STRICT;
CREATE TABLE channel_ingress_events (
  queue_name TEXT NOT NULL,
  event_id TEXT NOT NULL,
  channel_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  status TEXT NOT NULL,
  lane_key TEXT,
  payload_json TEXT NOT NULL,
  metadata_json TEXT,
  received_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  claim_token TEXT,
  claim_owner TEXT,
  claimed_at INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  last_attempt_at INTEGER,
  last_error TEXT,
  failed_reason TEXT,
  failed_at INTEGER,
  completed_at INTEGER,
  completed_metadata_json TEXT,
  PRIMARY KEY (queue_name, event_id)
) STRICT;
CREATE TABLE plugin_blob_entries (
  plugin_id TEXT NOT NULL,
  namespace TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  blob BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (plugin_id, namespace, entry_key)
) STRICT;
CREATE TABLE skill_uploads (
  upload_id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  slug TEXT NOT NULL,
  force INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT,
  actual_sha256 TEXT,
  received_bytes INTEGER NOT NULL,
  archive_blob BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  committed INTEGER NOT NULL,
  committed_at INTEGER,
  idempotency_key_hash TEXT UNIQUE
) STRICT;
CREATE TABLE skill_upload_chunks (
  upload_id TEXT NOT NULL,
  byte_offset INTEGER NOT NULL CHECK (byte_offset >= 0),
  size_bytes INTEGER NOT NULL CHECK (size_bytes > 0),
  chunk_blob BLOB NOT NULL,
  PRIMARY KEY (upload_id, byte_offset),
  FOREIGN KEY (upload_id) REFERENCES skill_uploads(upload_id) ON DELETE CASCADE,
  CHECK (length(chunk_blob) = size_bytes)
) STRICT;
CREATE TABLE capture_sessions (
  id TEXT NOT NULL PRIMARY KEY,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  mode TEXT NOT NULL,
  source_scope TEXT NOT NULL,
  source_process TEXT NOT NULL,
  proxy_url TEXT
) STRICT;
CREATE TABLE capture_blobs (
  blob_id TEXT NOT NULL PRIMARY KEY,
  content_type TEXT,
  encoding TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  data BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE capture_events (
  id INTEGER NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  ts INTEGER NOT NULL,
  source_scope TEXT NOT NULL,
  source_process TEXT NOT NULL,
  protocol TEXT NOT NULL,
  direction TEXT NOT NULL,
  kind TEXT NOT NULL,
  flow_id TEXT NOT NULL,
  method TEXT,
  host TEXT,
  path TEXT,
  status INTEGER,
  close_code INTEGER,
  content_type TEXT,
  headers_json TEXT,
  data_text TEXT,
  data_blob_id TEXT,
  data_sha256 TEXT,
  error_text TEXT,
  meta_json TEXT,
  FOREIGN KEY (session_id) REFERENCES capture_sessions(id) ON DELETE CASCADE,
  FOREIGN KEY (data_blob_id) REFERENCES capture_blobs(blob_id) ON DELETE SET NULL
) STRICT;
CREATE TABLE sandbox_registry_entries (
  registry_kind TEXT NOT NULL,
  container_name TEXT NOT NULL,
  session_key TEXT,
  backend_id TEXT,
  runtime_label TEXT,
  image TEXT,
  created_at_ms INTEGER,
  last_used_at_ms INTEGER,
  config_label_kind TEXT,
  config_hash TEXT,
  cdp_port INTEGER,
  no_vnc_port INTEGER,
  entry_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (registry_kind, container_name)
) STRICT;
CREATE TABLE cron_jobs (
  store_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  declaration_key TEXT,
  owner_agent_id TEXT,
  name TEXT NOT NULL,
  description TEXT,
  enabled INTEGER NOT NULL,
  agent_id TEXT,
  payload_kind TEXT NOT NULL,
  job_json TEXT NOT NULL,
  grant_definition_revision TEXT,
  grant_definition_generation INTEGER,
  grant_definition_updated_at INTEGER,
  state_json TEXT NOT NULL DEFAULT '{}',
  runtime_updated_at_ms INTEGER,
  schedule_identity TEXT,
  sort_order INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (store_key, job_id)
) STRICT;
INSERT INTO "cron_jobs" ("store_key","job_id","declaration_key","owner_agent_id","name","description","enabled","agent_id","payload_kind","job_json","grant_definition_revision","grant_definition_generation","grant_definition_updated_at","state_json","runtime_updated_at_ms","schedule_identity","sort_order","updated_at") VALUES ('/home/ann/.openclaw/cron/jobs.json','54d777bc-1a8c-4d9c-9f6c-51c3f2dd14e0','memory-core:memory-dreaming-promotion',NULL,'Memory Dreaming Promotion','a text of 201 letters',1,NULL,'agentTurn','{"id":"54d777bc-1a8c-4d9c-9f6c-51c3f2dd14e0","declarationKey":"memory-core:memory-dreaming-promotion","name":"Memory Dreaming Promotion","description":"a text of 201 letters","enabled":true,"createdAtMs":1795075694140,"schedule":{"kind":"cron","expr":"0 3 * * *"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"__openclaw_memory_core_short_term_promotion_dream__","lightContext":true,"toolsAllow":["*"]},"delivery":{"mode":"none"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}','sha256:4Bl_-9bPxqNYdkQ9F6XWVSQPl0bAN08Ntds1y4D1Knw',1,1795075694140,'{"nextRunAtMs":1795143600000}',1795075694140,'{"version":2,"enabled":true,"schedule":{"kind":"cron","expr":"0 3 * * *"},"hasTrigger":false}',0,1795075694140);
INSERT INTO "cron_jobs" ("store_key","job_id","declaration_key","owner_agent_id","name","description","enabled","agent_id","payload_kind","job_json","grant_definition_revision","grant_definition_generation","grant_definition_updated_at","state_json","runtime_updated_at_ms","schedule_identity","sort_order","updated_at") VALUES ('/home/ann/.openclaw/cron/jobs.json','b13bf7a9-a352-47c9-9f49-3c4e90b06935','heartbeat:main',NULL,'heartbeat-main',NULL,0,'main','heartbeat','{"id":"b13bf7a9-a352-47c9-9f49-3c4e90b06935","declarationKey":"heartbeat:main","displayName":"Heartbeat (main)","agentId":"main","name":"heartbeat-main","enabled":false,"createdAtMs":1795075694944,"schedule":{"kind":"every","everyMs":1800000,"anchorMs":290362},"sessionTarget":"main","wakeMode":"next-heartbeat","payload":{"kind":"heartbeat"},"state":{}}','sha256:LJLoJNbQ1U299sQqxrKnKwJIZm-eYwamlEdi1keDm4w',1,1795075694944,'{}',1795075694944,'{"version":2,"enabled":false,"schedule":{"kind":"every","everyMs":1800000,"anchorMs":290362},"hasTrigger":false}',1,1795075694944);
INSERT INTO "cron_jobs" ("store_key","job_id","declaration_key","owner_agent_id","name","description","enabled","agent_id","payload_kind","job_json","grant_definition_revision","grant_definition_generation","grant_definition_updated_at","state_json","runtime_updated_at_ms","schedule_identity","sort_order","updated_at") VALUES ('/home/ann/.openclaw/cron/jobs.json','edb0a5e7-3a21-4321-b2d2-1b51fd74ef71','skill-collection-review:main',NULL,'skill-collection-review-main',NULL,1,'main','agentTurn','{"id":"edb0a5e7-3a21-4321-b2d2-1b51fd74ef71","declarationKey":"skill-collection-review:main","displayName":"Skill collection review (main)","agentId":"main","name":"skill-collection-review-main","enabled":true,"createdAtMs":1795075694968,"schedule":{"kind":"every","everyMs":604800000,"anchorMs":329690362},"sessionTarget":"isolated","wakeMode":"next-heartbeat","payload":{"kind":"agentTurn","message":"a text of 3199 letters","toolsAllow":["ls","read","write","edit","apply_patch","exec"]},"delivery":{"mode":"none"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}','sha256:roBnWPI3rlUoNc2d5IORJSje5DXYORCgoGdvoLYb-4A',1,1795075694968,'{"nextRunAtMs":1795376090362}',1795075694968,'{"version":2,"enabled":true,"schedule":{"kind":"every","everyMs":604800000,"anchorMs":329690362},"hasTrigger":false}',2,1795075694968);
INSERT INTO "cron_jobs" ("store_key","job_id","declaration_key","owner_agent_id","name","description","enabled","agent_id","payload_kind","job_json","grant_definition_revision","grant_definition_generation","grant_definition_updated_at","state_json","runtime_updated_at_ms","schedule_identity","sort_order","updated_at") VALUES ('/home/ann/.openclaw/cron/jobs.json','3e59a18f-4b88-4db9-8036-1861397ef6ff',NULL,NULL,'lab',NULL,1,NULL,'agentTurn','{"id":"3e59a18f-4b88-4db9-8036-1861397ef6ff","name":"lab","enabled":true,"createdAtMs":1795075698996,"schedule":{"kind":"every","everyMs":3600000,"anchorMs":1795075698996},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"hello from cron","toolsAllow":["*"]},"delivery":{"mode":"announce"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}','sha256:qdiUZOLzJ0ruOwps-nFqD1-d2eSXzUXfqUVyLxYW2Jw',1,1795075698996,'{"nextRunAtMs":1795079298996}',1795075698996,'{"version":2,"enabled":true,"schedule":{"kind":"every","everyMs":3600000,"anchorMs":1795075698996},"hasTrigger":false}',3,1795075698996);
INSERT INTO "cron_jobs" ("store_key","job_id","declaration_key","owner_agent_id","name","description","enabled","agent_id","payload_kind","job_json","grant_definition_revision","grant_definition_generation","grant_definition_updated_at","state_json","runtime_updated_at_ms","schedule_identity","sort_order","updated_at") VALUES ('/home/ann/.openclaw/cron/jobs.json','b977812c-fbb9-4a98-a376-40558bd7fae4',NULL,NULL,'lab2',NULL,1,NULL,'agentTurn','{"id":"b977812c-fbb9-4a98-a376-40558bd7fae4","name":"lab2","enabled":true,"createdAtMs":1795077069707,"schedule":{"kind":"every","everyMs":7200000,"anchorMs":1795077069707},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"hi","toolsAllow":["*"]},"delivery":{"mode":"announce"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}','sha256:ZhaFQWXorbSXUs_jbd42vg_ZDO98zSVtUybE9qV_Wis',1,1795077069707,'{"nextRunAtMs":1795084269707}',1795077069707,'{"version":2,"enabled":true,"schedule":{"kind":"every","everyMs":7200000,"anchorMs":1795077069707},"hasTrigger":false}',4,1795077069707);
CREATE TABLE cron_run_receipts (
  receipt_id TEXT PRIMARY KEY,
  store_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  config_revision TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  request_run_id TEXT,
  status TEXT NOT NULL,
  owner_pid INTEGER NOT NULL,
  owner_start_time INTEGER,
  started_at_ms INTEGER NOT NULL,
  finished_at_ms INTEGER,
  error_text TEXT,
  CHECK (status IN ('running', 'ok', 'error', 'skipped', 'interrupted', 'superseded')),
  CHECK (
    (status = 'running' AND finished_at_ms IS NULL)
    OR
    (status != 'running' AND finished_at_ms IS NOT NULL)
  )
) STRICT;
CREATE TABLE cron_job_scratch (
  store_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  content TEXT,
  revision INTEGER NOT NULL,
  source_sha256 TEXT,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (store_key, job_id),
  CHECK (revision >= 1),
  CHECK (content IS NULL OR length(CAST(content AS BLOB)) <= 262144)
) STRICT;
CREATE TABLE delivery_queue_entries (
  queue_name TEXT NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  entry_kind TEXT,
  session_key TEXT,
  channel TEXT,
  target TEXT,
  account_id TEXT,
  retry_count INTEGER NOT NULL DEFAULT 0,
  last_attempt_at INTEGER,
  last_error TEXT,
  recovery_state TEXT,
  platform_send_started_at INTEGER,
  entry_json TEXT NOT NULL,
  enqueued_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  failed_at INTEGER,
  PRIMARY KEY (queue_name, id)
) STRICT;
CREATE TABLE task_runs (
  task_id TEXT NOT NULL PRIMARY KEY,
  runtime TEXT NOT NULL,
  task_kind TEXT,
  source_id TEXT,
  requester_session_key TEXT,
  owner_key TEXT NOT NULL,
  scope_kind TEXT NOT NULL,
  child_session_key TEXT,
  parent_flow_id TEXT,
  parent_task_id TEXT,
  agent_id TEXT,
  requester_agent_id TEXT,
  run_id TEXT,
  execution_owner_host TEXT,
  execution_owner_pid INTEGER,
  execution_owner_start_identity INTEGER,
  label TEXT,
  task TEXT NOT NULL,
  status TEXT NOT NULL,
  delivery_status TEXT NOT NULL,
  notify_policy TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  last_event_at INTEGER,
  cleanup_after INTEGER,
  tool_use_count INTEGER,
  last_tool_name TEXT,
  error TEXT,
  progress_summary TEXT,
  terminal_summary TEXT,
  terminal_outcome TEXT,
  detail_json TEXT
) STRICT;
CREATE TABLE subagent_runs (
  run_id TEXT NOT NULL PRIMARY KEY,
  child_session_key TEXT NOT NULL,
  controller_session_key TEXT,
  controller_store_path TEXT,
  requester_session_key TEXT NOT NULL,
  requester_store_path TEXT,
  created_at INTEGER NOT NULL,
  payload_json TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE TABLE current_conversation_bindings (
  binding_key TEXT NOT NULL PRIMARY KEY,
  binding_id TEXT NOT NULL,
  target_session_key TEXT NOT NULL,
  channel TEXT NOT NULL,
  account_id TEXT NOT NULL,
  conversation_kind TEXT NOT NULL,
  parent_conversation_id TEXT,
  conversation_id TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  status TEXT NOT NULL,
  bound_at INTEGER NOT NULL,
  expires_at INTEGER,
  metadata_json TEXT,
  record_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE plugin_binding_approvals (
  plugin_root TEXT NOT NULL,
  channel TEXT NOT NULL,
  account_id TEXT NOT NULL,
  plugin_id TEXT NOT NULL,
  plugin_name TEXT,
  approved_at INTEGER NOT NULL,
  PRIMARY KEY (plugin_root, channel, account_id)
) STRICT;
CREATE TABLE task_delivery_state (
  task_id TEXT NOT NULL PRIMARY KEY,
  requester_origin_json TEXT,
  last_notified_event_at INTEGER,
  FOREIGN KEY (task_id) REFERENCES task_runs(task_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE flow_runs (
  flow_id TEXT NOT NULL PRIMARY KEY,
  shape TEXT,
  sync_mode TEXT NOT NULL DEFAULT 'managed',
  owner_key TEXT NOT NULL,
  requester_origin_json TEXT,
  controller_id TEXT,
  revision INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL,
  notify_policy TEXT NOT NULL,
  goal TEXT NOT NULL,
  current_step TEXT,
  blocked_task_id TEXT,
  blocked_summary TEXT,
  state_json TEXT,
  wait_json TEXT,
  cancel_requested_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE TABLE meeting_transcript_sessions (
  session_id TEXT NOT NULL,
  started_at TEXT NOT NULL,
  selector TEXT NOT NULL UNIQUE,
  export_key TEXT NOT NULL,
  session_slug TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  title TEXT,
  source_json TEXT NOT NULL,
  stopped_at TEXT,
  metadata_json TEXT,
  export_manifest_json TEXT NOT NULL DEFAULT '{}',
  export_pending_json TEXT NOT NULL DEFAULT '[]',
  next_utterance_seq INTEGER NOT NULL DEFAULT 0 CHECK (next_utterance_seq >= 0),
  created_at_ms INTEGER NOT NULL CHECK (created_at_ms >= 0),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0),
  PRIMARY KEY (session_id, started_at)
) STRICT;
CREATE TABLE meeting_transcript_utterances (
  session_id TEXT NOT NULL,
  session_started_at TEXT NOT NULL,
  sequence INTEGER NOT NULL CHECK (sequence >= 0),
  utterance_id TEXT,
  started_at TEXT,
  ended_at TEXT,
  speaker_id TEXT,
  speaker_label TEXT,
  text TEXT NOT NULL,
  final INTEGER CHECK (final IN (0, 1)),
  metadata_json TEXT,
  PRIMARY KEY (session_id, session_started_at, sequence),
  FOREIGN KEY (session_id, session_started_at)
    REFERENCES meeting_transcript_sessions(session_id, started_at)
    ON DELETE CASCADE
) STRICT;
CREATE TABLE meeting_transcript_summaries (
  session_id TEXT NOT NULL,
  session_started_at TEXT NOT NULL,
  generated_at TEXT,
  summary_json TEXT,
  markdown TEXT,
  utterance_count INTEGER NOT NULL CHECK (utterance_count >= 0),
  PRIMARY KEY (session_id, session_started_at),
  FOREIGN KEY (session_id, session_started_at)
    REFERENCES meeting_transcript_sessions(session_id, started_at)
    ON DELETE CASCADE,
  CHECK (summary_json IS NOT NULL OR markdown IS NOT NULL)
) STRICT;
CREATE TABLE migration_runs (
  id TEXT NOT NULL PRIMARY KEY,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  status TEXT NOT NULL,
  report_json TEXT NOT NULL
) STRICT;
INSERT INTO "migration_runs" ("id","started_at","finished_at","status","report_json") VALUES ('shared-auth-store:5654e3b0bd1acca621af1942',1795075678756,1795075678756,'completed','{"source":"shared-auth-store-state-db","target":"auth_profile_stores,auth_profile_state","stage":"completed","importedRecordCount":0}');
INSERT INTO "migration_runs" ("id","started_at","finished_at","status","report_json") VALUES ('node-desktop-stream-pairing-defaults-v1',1795075687029,1795075687029,'completed','{"retiredDesktopApprovals":0}');
CREATE TABLE migration_sources (
  source_key TEXT NOT NULL PRIMARY KEY,
  migration_kind TEXT NOT NULL,
  source_path TEXT NOT NULL,
  target_table TEXT NOT NULL,
  source_sha256 TEXT,
  source_size_bytes INTEGER,
  source_record_count INTEGER,
  last_run_id TEXT NOT NULL,
  status TEXT NOT NULL,
  imported_at INTEGER NOT NULL,
  removed_source INTEGER NOT NULL DEFAULT 0,
  report_json TEXT NOT NULL,
  FOREIGN KEY (last_run_id) REFERENCES migration_runs(id) ON DELETE CASCADE
) STRICT;
INSERT INTO "migration_sources" ("source_key","migration_kind","source_path","target_table","source_sha256","source_size_bytes","source_record_count","last_run_id","status","imported_at","removed_source","report_json") VALUES ('shared-auth-store:ad60b0fdd12c7802a9ebfeb8f5a09ec8aca4dd4e532294df5c252678f3bf6f15','shared-auth-store-state-db','/home/ann/.openclaw/agents/main/agent/openclaw-agent.sqlite','auth_profile_stores','74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b',NULL,0,'shared-auth-store:5654e3b0bd1acca621af1942','completed',1795075678756,1,'{"source":"auth_profile_store","target":"auth_profile_stores","stage":"completed","sourceSha256":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","importedRecordCount":0}');
INSERT INTO "migration_sources" ("source_key","migration_kind","source_path","target_table","source_sha256","source_size_bytes","source_record_count","last_run_id","status","imported_at","removed_source","report_json") VALUES ('shared-auth-store:ae2175152341827a70225f6398cb12682dfa2d7c9abef688fa07fe02d14872c5','shared-auth-store-state-db','/home/ann/.openclaw/agents/main/agent/openclaw-agent.sqlite','auth_profile_state','74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b',NULL,0,'shared-auth-store:5654e3b0bd1acca621af1942','completed',1795075678756,1,'{"source":"auth_profile_state","target":"auth_profile_state","stage":"completed","sourceSha256":"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b","importedRecordCount":0}');
CREATE TABLE backup_runs (
  id TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL,
  archive_path TEXT NOT NULL,
  status TEXT NOT NULL,
  manifest_json TEXT NOT NULL
) STRICT;
CREATE TABLE worktrees (
  id TEXT NOT NULL PRIMARY KEY,
  repo_fingerprint TEXT NOT NULL,
  repo_root TEXT NOT NULL,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  base_ref TEXT NOT NULL,
  owner_kind TEXT NOT NULL CHECK (owner_kind IN ('manual', 'workboard', 'session')),
  owner_id TEXT,
  snapshot_ref TEXT,
  provisioned_paths_json TEXT,
  created_at INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL,
  removed_at INTEGER,
  run_end_cleanup_json TEXT
) STRICT;
CREATE TABLE worktree_provisioned_file_chunks (
  worktree_id TEXT NOT NULL,
  path TEXT NOT NULL,
  chunk_index INTEGER NOT NULL CHECK (chunk_index >= 0),
  data BLOB NOT NULL,
  PRIMARY KEY (worktree_id, path, chunk_index)
) STRICT;
CREATE TABLE worktree_templates (
  cache_key TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  repo_root TEXT NOT NULL,
  common_dir TEXT NOT NULL,
  worktree_root TEXT NOT NULL,
  path TEXT NOT NULL,
  backend TEXT NOT NULL,
  source_commit TEXT NOT NULL,
  content_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('preparing', 'ready')),
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL
) STRICT;
CREATE TABLE projects (
  id TEXT NOT NULL PRIMARY KEY,
  display_name TEXT NOT NULL,
  repo_root TEXT NOT NULL,
  origin_url TEXT,
  source TEXT NOT NULL CHECK (source IN ('registered', 'cloned')),
  created_at_ms INT NOT NULL,
  updated_at_ms INT NOT NULL
) STRICT;
CREATE TABLE user_preferences (
  profile_id TEXT NOT NULL,
  pref_key TEXT NOT NULL,
  value_json TEXT NOT NULL,
  updated_at_ms INT NOT NULL,
  PRIMARY KEY (profile_id, pref_key)
) STRICT;
CREATE TABLE session_groups (
  name TEXT NOT NULL PRIMARY KEY,
  position INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  cwd TEXT,
  worktree INTEGER
) STRICT;
CREATE TABLE worker_environments (
  environment_id TEXT NOT NULL PRIMARY KEY,
  provider_id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  profile_snapshot_json TEXT NOT NULL,
  last_activated_at_ms INTEGER,
  preparation_key TEXT,
  preparation_purpose TEXT,
  preparation_demand_at_ms INTEGER,
  preparation_expires_at_ms INTEGER,
  preparation_consumed_at_ms INTEGER CHECK (
    (preparation_key IS NULL AND preparation_demand_at_ms IS NULL
      AND preparation_expires_at_ms IS NULL AND preparation_consumed_at_ms IS NULL)
    OR
    (preparation_key IS NOT NULL AND length(preparation_key) = 64
      AND preparation_key NOT GLOB '*[^0-9a-f]*'
      AND preparation_demand_at_ms IS NOT NULL
      AND preparation_demand_at_ms BETWEEN 0 AND 9007199254740991
      AND preparation_expires_at_ms IS NOT NULL
      AND preparation_expires_at_ms > preparation_demand_at_ms
      AND preparation_expires_at_ms <= 9007199254740991
      AND (preparation_consumed_at_ms IS NULL
        OR (preparation_consumed_at_ms >= preparation_demand_at_ms
          AND preparation_consumed_at_ms < preparation_expires_at_ms)))
  ),
  provision_operation_id TEXT NOT NULL UNIQUE,
  lease_id TEXT,
  node_setup_id TEXT,
  node_device_id TEXT,
  ssh_host TEXT,
  ssh_port INTEGER CHECK (ssh_port IS NULL OR (ssh_port >= 1 AND ssh_port <= 65535)),
  ssh_user TEXT,
  ssh_host_key TEXT,
  ssh_key_ref_json TEXT,
  desktop_json TEXT,
  state TEXT NOT NULL CHECK (
    state IN (
      'requested',
      'provisioning',
      'bootstrapping',
      'ready',
      'attached',
      'idle',
      'draining',
      'destroying',
      'destroyed',
      'failed',
      'orphaned'
    )
  ),
  bootstrap_bundle_hash TEXT,
  bootstrap_openclaw_version TEXT,
  bootstrap_protocol_features_json TEXT,
  bootstrap_install_kind TEXT,
  owner_epoch INTEGER NOT NULL DEFAULT 0 CHECK (owner_epoch >= 0),
  teardown_terminal_state TEXT CHECK (teardown_terminal_state IN ('destroyed', 'failed')),
  attached_session_ids_json TEXT NOT NULL DEFAULT '[]',
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  state_changed_at_ms INTEGER NOT NULL,
  idle_since_at_ms INTEGER,
  destroy_requested_at_ms INTEGER,
  last_error TEXT,
  shared_host INTEGER
) STRICT;
CREATE TABLE worker_environment_ssh_fallback_ports (
  environment_id TEXT NOT NULL,
  position INTEGER NOT NULL CHECK (position >= 0 AND position <= 9),
  port INTEGER NOT NULL CHECK (port >= 1 AND port <= 65535),
  PRIMARY KEY (environment_id, position),
  UNIQUE (environment_id, port),
  FOREIGN KEY (environment_id) REFERENCES worker_environments(environment_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE worker_session_placements (
  session_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  execution_mode TEXT CHECK (execution_mode IN ('worker-turn', 'remote-exec')),
  state TEXT NOT NULL CHECK (
    state IN (
      'local',
      'requested',
      'provisioning',
      'syncing',
      'starting',
      'active',
      'draining',
      'reconciling',
      'reclaimed',
      'failed'
    )
  ),
  environment_id TEXT,
  transition_generation INTEGER NOT NULL DEFAULT 0 CHECK (transition_generation >= 0),
  active_owner_epoch INTEGER CHECK (active_owner_epoch IS NULL OR active_owner_epoch >= 1),
  workspace_base_manifest_ref TEXT,
  remote_workspace_dir TEXT,
  worker_bundle_hash TEXT,
  last_transcript_ack_cursor INTEGER CHECK (
    last_transcript_ack_cursor IS NULL OR last_transcript_ack_cursor >= 0
  ),
  last_live_event_ack_cursor INTEGER CHECK (
    last_live_event_ack_cursor IS NULL OR last_live_event_ack_cursor >= 0
  ),
  recovery_error TEXT,
  turn_claim_owner TEXT CHECK (turn_claim_owner IN ('local', 'worker')),
  turn_claim_id TEXT,
  turn_claim_run_id TEXT,
  turn_claim_generation INTEGER CHECK (
    turn_claim_generation IS NULL OR turn_claim_generation >= 0
  ),
  turn_claim_owner_epoch INTEGER CHECK (
    turn_claim_owner_epoch IS NULL OR turn_claim_owner_epoch >= 1
  ),
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  state_changed_at_ms INTEGER NOT NULL,
  terminal_reason TEXT,
  terminal_at_ms INTEGER,
  CHECK (
    (state IN ('local', 'requested')
      AND environment_id IS NULL AND active_owner_epoch IS NULL
      AND workspace_base_manifest_ref IS NULL AND remote_workspace_dir IS NULL
      AND worker_bundle_hash IS NULL
      AND last_transcript_ack_cursor IS NULL AND last_live_event_ack_cursor IS NULL
      AND recovery_error IS NULL)
    OR
    (state IS 'provisioning'
      AND active_owner_epoch IS NULL
      AND workspace_base_manifest_ref IS NULL AND remote_workspace_dir IS NULL
      AND worker_bundle_hash IS NULL
      AND last_transcript_ack_cursor IS NULL AND last_live_event_ack_cursor IS NULL
      AND recovery_error IS NULL)
    OR
    (state IS 'syncing'
      AND environment_id IS NOT NULL AND active_owner_epoch IS NULL
      AND workspace_base_manifest_ref IS NULL AND remote_workspace_dir IS NULL
      AND worker_bundle_hash IS NOT NULL
      AND last_transcript_ack_cursor IS NULL AND last_live_event_ack_cursor IS NULL
      AND recovery_error IS NULL)
    OR
    (state IS 'starting'
      AND environment_id IS NOT NULL AND active_owner_epoch IS NULL
      AND workspace_base_manifest_ref IS NOT NULL AND remote_workspace_dir IS NOT NULL
      AND worker_bundle_hash IS NOT NULL
      AND last_transcript_ack_cursor IS NULL AND last_live_event_ack_cursor IS NULL
      AND recovery_error IS NULL)
    OR
    (state IN ('active', 'draining', 'reconciling')
      AND environment_id IS NOT NULL AND active_owner_epoch IS NOT NULL
      AND workspace_base_manifest_ref IS NOT NULL AND remote_workspace_dir IS NOT NULL
      AND worker_bundle_hash IS NOT NULL AND recovery_error IS NULL)
    OR
    (state IS 'reclaimed'
      AND environment_id IS NOT NULL AND active_owner_epoch IS NOT NULL
      AND workspace_base_manifest_ref IS NOT NULL AND remote_workspace_dir IS NOT NULL
      AND worker_bundle_hash IS NOT NULL AND recovery_error IS NULL
      AND turn_claim_owner IS NULL AND turn_claim_id IS NULL AND turn_claim_run_id IS NULL
      AND turn_claim_generation IS NULL AND turn_claim_owner_epoch IS NULL)
    OR
    (state IS 'failed' AND recovery_error IS NOT NULL)
  ),
  CHECK (
    (turn_claim_owner IS NULL AND turn_claim_id IS NULL AND turn_claim_run_id IS NULL
      AND turn_claim_generation IS NULL AND turn_claim_owner_epoch IS NULL)
    OR
    (turn_claim_owner IS 'local' AND turn_claim_id IS NOT NULL
      AND turn_claim_run_id IS NOT NULL AND turn_claim_generation IS NOT NULL
      AND turn_claim_owner_epoch IS NULL)
    OR
    (turn_claim_owner IS 'worker' AND turn_claim_id IS NOT NULL
      AND turn_claim_run_id IS NOT NULL AND turn_claim_generation IS NOT NULL
      AND turn_claim_owner_epoch IS NOT NULL)
  ),
  CHECK (
    turn_claim_owner IS NULL
    OR
    (turn_claim_owner IS 'local' AND (
      state IN ('local', 'requested', 'failed')
      OR (state IN ('active', 'draining') AND execution_mode IS 'remote-exec')
    ))
    OR
    (turn_claim_owner IS 'worker' AND state IN ('active', 'draining')
      AND (execution_mode IS NULL OR execution_mode IS 'worker-turn')
      AND turn_claim_owner_epoch IS active_owner_epoch)
  )
) STRICT;
INSERT INTO "worker_session_placements" ("session_id","agent_id","session_key","execution_mode","state","environment_id","transition_generation","active_owner_epoch","workspace_base_manifest_ref","remote_workspace_dir","worker_bundle_hash","last_transcript_ack_cursor","last_live_event_ack_cursor","recovery_error","turn_claim_owner","turn_claim_id","turn_claim_run_id","turn_claim_generation","turn_claim_owner_epoch","created_at_ms","updated_at_ms","state_changed_at_ms","terminal_reason","terminal_at_ms") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','main','agent:main:main',NULL,'local',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795075705818,1795077068744,1795075705818,NULL,NULL);
CREATE TABLE worker_session_placement_moves (
  operation_id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE
    REFERENCES worker_session_placements(session_id) ON DELETE CASCADE,
  source_generation INTEGER NOT NULL CHECK (source_generation >= 0),
  source_environment_id TEXT NOT NULL CHECK (
    length(source_environment_id) BETWEEN 1 AND 256
    AND source_environment_id = trim(source_environment_id)
  ),
  source_owner_epoch INTEGER NOT NULL CHECK (source_owner_epoch >= 1),
  target_kind TEXT NOT NULL CHECK (target_kind IN ('gateway', 'profile', 'device')),
  target_id TEXT,
  -- Keep these nullable columns constraint-free so lazy ALTER TABLE produces the
  -- same shape as fresh databases; placement-move code validates their values.
  target_machine_class TEXT,
  target_os TEXT,
  -- Explicit source abandonment is a durable operator decision. Keep the bit
  -- bare and nullable so same-version older readers can safely omit it.
  abandon_source INTEGER,
  last_error TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  CHECK (
    (target_kind IS 'gateway' AND target_id IS NULL)
    OR
    (target_kind IN ('profile', 'device')
      AND target_id IS NOT NULL
      AND length(target_id) BETWEEN 1 AND 256
      AND target_id = trim(target_id))
  )
) STRICT;
CREATE TABLE worker_workspace_reconciliations (
  session_id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL,
  owner_epoch INTEGER NOT NULL CHECK (owner_epoch >= 1),
  placement_generation INTEGER NOT NULL CHECK (placement_generation >= 0),
  base_manifest_ref TEXT NOT NULL,
  current_manifest_ref TEXT NOT NULL,
  plan_json TEXT NOT NULL,
  base_pack BLOB NOT NULL CHECK (length(base_pack) <= 268435456),
  created_at_ms INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES worker_session_placements(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE worker_workspace_pending_results (
  session_id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL,
  owner_epoch INTEGER NOT NULL CHECK (owner_epoch >= 1),
  placement_generation INTEGER NOT NULL CHECK (placement_generation >= 0),
  claim_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  gateway_instance_id TEXT NOT NULL,
  recovery_requested_at_ms INTEGER,
  workspace_accepted_at_ms INTEGER,
  staged_result_ref TEXT,
  repository_workspace_id TEXT,
  created_at_ms INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES worker_session_placements(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE github_publication_requests (
  request_id TEXT NOT NULL PRIMARY KEY,
  idempotency_key TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  session_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  worktree_id TEXT NOT NULL,
  repository_fingerprint TEXT NOT NULL,
  claim_id TEXT,
  run_id TEXT,
  environment_id TEXT,
  owner_epoch INTEGER CHECK (owner_epoch IS NULL OR owner_epoch >= 1),
  placement_generation INTEGER CHECK (
    placement_generation IS NULL OR placement_generation >= 0
  ),
  identity_source TEXT NOT NULL CHECK (
    identity_source IN ('system-detected', 'system-configured', 'agent-override')
  ),
  identity_profile_id TEXT,
  identity_account_id INTEGER NOT NULL CHECK (identity_account_id >= 1),
  identity_login TEXT NOT NULL,
  title TEXT,
  body TEXT,
  status TEXT NOT NULL CHECK (
    status IN ('requested', 'publishing', 'published', 'failed')
  ),
  gateway_instance_id TEXT,
  repository TEXT,
  branch TEXT NOT NULL,
  base_branch TEXT,
  source_head_commit TEXT,
  source_index_tree TEXT,
  workspace_tree TEXT,
  head_commit TEXT,
  pull_request_url TEXT,
  error_code TEXT,
  next_action TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  reported_at_ms INTEGER,
  UNIQUE (session_id, idempotency_key),
  CHECK (
    (claim_id IS NULL AND run_id IS NULL AND environment_id IS NULL
      AND owner_epoch IS NULL AND placement_generation IS NULL)
    OR
    (claim_id IS NOT NULL AND run_id IS NOT NULL AND placement_generation IS NOT NULL
      AND ((environment_id IS NULL AND owner_epoch IS NULL)
        OR (environment_id IS NOT NULL AND owner_epoch IS NOT NULL)))
  ),
  CHECK (
    (identity_source IS 'system-detected' AND identity_profile_id IS NULL)
    OR
    (identity_source IN ('system-configured', 'agent-override')
      AND identity_profile_id IS NOT NULL)
  ),
  CHECK (
    (source_head_commit IS NULL AND source_index_tree IS NULL AND workspace_tree IS NULL)
    OR
    (source_head_commit IS NOT NULL AND workspace_tree IS NOT NULL)
  ),
  CHECK (
    (status IS 'published' AND pull_request_url IS NOT NULL AND error_code IS NULL
      AND next_action IS NULL)
    OR
    (status IS 'failed' AND pull_request_url IS NULL AND error_code IS NOT NULL
      AND next_action IS NOT NULL)
    OR
    (status IN ('requested', 'publishing') AND pull_request_url IS NULL
      AND error_code IS NULL AND next_action IS NULL)
  )
) STRICT;
CREATE TABLE worker_environment_credentials (
  environment_id TEXT NOT NULL PRIMARY KEY,
  credential_hash TEXT NOT NULL UNIQUE,
  bundle_hash TEXT NOT NULL,
  session_id TEXT,
  rpc_set_version INTEGER NOT NULL CHECK (rpc_set_version >= 1),
  owner_epoch INTEGER NOT NULL CHECK (owner_epoch >= 0),
  expires_at_ms INTEGER NOT NULL CHECK (expires_at_ms >= 0),
  delivered_at_ms INTEGER CHECK (delivered_at_ms >= 0),
  FOREIGN KEY (environment_id) REFERENCES worker_environments(environment_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE worker_transcript_commit_heads (
  session_id TEXT NOT NULL,
  run_epoch INTEGER NOT NULL CHECK (run_epoch >= 0),
  environment_id TEXT NOT NULL,
  next_seq INTEGER NOT NULL CHECK (next_seq >= 1),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0),
  PRIMARY KEY (session_id, run_epoch)
) STRICT;
CREATE TABLE worker_transcript_commits (
  session_id TEXT NOT NULL,
  run_epoch INTEGER NOT NULL CHECK (run_epoch >= 0),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  request_hash TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'terminal')),
  result_json TEXT,
  created_at_ms INTEGER NOT NULL CHECK (created_at_ms >= 0),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0),
  PRIMARY KEY (session_id, run_epoch, seq),
  FOREIGN KEY (session_id, run_epoch)
    REFERENCES worker_transcript_commit_heads(session_id, run_epoch)
    ON DELETE CASCADE,
  CHECK (
    (state = 'pending' AND result_json IS NULL) OR
    (state = 'terminal' AND result_json IS NOT NULL)
  )
) STRICT;
CREATE TABLE worker_inference_turns (
  session_id TEXT NOT NULL,
  run_epoch INTEGER NOT NULL CHECK (run_epoch >= 0),
  run_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  environment_id TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'terminal')),
  terminal_json TEXT,
  created_at_ms INTEGER NOT NULL CHECK (created_at_ms >= 0),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0),
  PRIMARY KEY (session_id, run_epoch, run_id, turn_id),
  FOREIGN KEY (environment_id) REFERENCES worker_environments(environment_id) ON DELETE CASCADE,
  CHECK (
    (state = 'pending' AND terminal_json IS NULL) OR
    (state = 'terminal' AND terminal_json IS NOT NULL)
  )
) STRICT;
CREATE TABLE fleet_cells (
  tenant_id TEXT NOT NULL PRIMARY KEY,
  created_at_ms INTEGER NOT NULL,
  image TEXT NOT NULL,
  runtime TEXT NOT NULL,
  host_port INTEGER NOT NULL,
  container_name TEXT NOT NULL,
  data_dir TEXT NOT NULL
) STRICT;
CREATE TABLE claw_installs (
  agent_id TEXT NOT NULL PRIMARY KEY,
  schema_version TEXT NOT NULL,
  source_kind TEXT NOT NULL,
  claw_name TEXT NOT NULL,
  claw_version TEXT NOT NULL,
  package_root TEXT NOT NULL,
  manifest_path TEXT NOT NULL,
  integrity_kind TEXT NOT NULL,
  integrity TEXT NOT NULL,
  source_byte_length INTEGER NOT NULL,
  manifest_schema_version INTEGER NOT NULL,
  plan_integrity TEXT NOT NULL,
  workspace TEXT NOT NULL UNIQUE,
  agent_config_digest TEXT NOT NULL,
  agent_owned_paths_json TEXT NOT NULL,
  bootstrap_source_path TEXT,
  bootstrap_content_digest TEXT,
  status TEXT NOT NULL CHECK (
    status IN ('pending', 'workspace_ready', 'config_committed', 'complete', 'partial')
  ),
  added_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE claw_workspace_files (
  agent_id TEXT NOT NULL,
  target_path TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  workspace TEXT NOT NULL,
  source_path TEXT NOT NULL,
  content_digest TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (agent_id, target_path)
) STRICT;
CREATE TABLE claw_package_refs (
  agent_id TEXT NOT NULL,
  package_kind TEXT NOT NULL,
  package_source TEXT NOT NULL,
  package_ref TEXT NOT NULL,
  package_version TEXT NOT NULL,
  package_integrity TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  claw_name TEXT NOT NULL,
  package_status TEXT NOT NULL,
  relationship TEXT NOT NULL CHECK (relationship IN ('managed', 'referenced')),
  origin TEXT NOT NULL CHECK (origin IN ('claw-introduced', 'pre-existing')),
  independent_owner INTEGER NOT NULL CHECK (independent_owner IN (0, 1)),
  extension_id TEXT,
  extension_format TEXT,
  extension_detected_format TEXT,
  extension_mapped_json TEXT,
  extension_unavailable_json TEXT,
  extension_adapter_identity TEXT,
  installed_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (agent_id, package_kind, package_source, package_ref, package_version)
) STRICT;
CREATE TABLE claw_cron_refs (
  agent_id TEXT NOT NULL,
  manifest_id TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  declaration_key TEXT NOT NULL UNIQUE,
  scheduler_job_id TEXT UNIQUE,
  status TEXT NOT NULL,
  job_json TEXT NOT NULL,
  error TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (agent_id, manifest_id)
) STRICT;
CREATE TABLE claw_mcp_server_refs (
  agent_id TEXT NOT NULL,
  name TEXT NOT NULL,
  schema_version TEXT NOT NULL,
  config_digest TEXT NOT NULL,
  relationship TEXT NOT NULL CHECK (relationship IN ('managed', 'referenced')),
  origin TEXT NOT NULL CHECK (origin IN ('claw-introduced', 'pre-existing')),
  independent_owner INTEGER NOT NULL DEFAULT 0 CHECK (independent_owner IN (0, 1)),
  status TEXT NOT NULL,
  error TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (agent_id, name)
) STRICT;
CREATE TABLE outbound_media_provenance (
  realpath TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE secret_store_entries (
  scope_kind TEXT NOT NULL CHECK (scope_kind IN ('team', 'identity')),
  scope_id TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('secret', 'env')),
  created_at_ms INTEGER NOT NULL CHECK (created_at_ms >= 0),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0),
  updated_by TEXT,
  deleted_at_ms INTEGER,
  allowed_hosts TEXT,
  CHECK ((scope_kind = 'team' AND scope_id = '') OR (scope_kind = 'identity' AND length(scope_id) > 0)),
  PRIMARY KEY (scope_kind, scope_id, name)
) STRICT;
CREATE TABLE worker_environment_session_attachments (
  session_id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_lifecycle_revision TEXT,
  environment_id TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL CHECK (generation >= 1),
  created_at_ms INTEGER NOT NULL,
  last_used_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER,
  FOREIGN KEY (environment_id) REFERENCES worker_environments(environment_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE web_push_approval_deliveries (
  approval_id TEXT NOT NULL
    REFERENCES operator_approvals(approval_id) ON DELETE CASCADE,
  subscription_id TEXT NOT NULL
    REFERENCES web_push_subscriptions(subscription_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL,
  user_profile_id TEXT,
  prepared_at_ms INTEGER NOT NULL,
  PRIMARY KEY (approval_id, subscription_id)
) STRICT;
CREATE TABLE user_profiles (
  id TEXT NOT NULL PRIMARY KEY,
  display_name TEXT,
  primary_github_account_id INTEGER,
  avatar BLOB,
  avatar_mime TEXT,
  avatar_sha256 TEXT,
  merged_into TEXT,
  role TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE user_profile_emails (
  email TEXT NOT NULL PRIMARY KEY,
  profile_id TEXT NOT NULL,
  binding_id TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE user_profile_identities (
  provider TEXT NOT NULL,
  subject TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  canonical_login TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (provider, subject)
) STRICT;
CREATE INDEX idx_diagnostic_events_scope_sequence
  ON diagnostic_events(scope, sequence, event_key);
CREATE INDEX idx_skill_usage_key
  ON skill_usage(skill_key, skill_file);
CREATE INDEX idx_skill_workshop_collection_reviews_owner_time
  ON skill_workshop_collection_reviews(owner_agent_id, create_time DESC, review_id);
CREATE INDEX idx_audit_events_time
  ON audit_events(occurred_at DESC, sequence DESC);
CREATE INDEX idx_audit_events_agent_sequence
  ON audit_events(agent_id, sequence DESC);
CREATE INDEX idx_audit_events_session_sequence
  ON audit_events(session_key, sequence DESC);
CREATE INDEX idx_audit_events_run_sequence
  ON audit_events(run_id, sequence DESC);
CREATE INDEX idx_audit_events_kind_sequence
  ON audit_events(kind, sequence DESC);
CREATE INDEX idx_audit_events_status_sequence
  ON audit_events(status, sequence DESC);
CREATE INDEX idx_audit_events_channel_sequence
  ON audit_events(channel, sequence DESC);
CREATE INDEX idx_audit_events_direction_sequence
  ON audit_events(direction, sequence DESC);
CREATE INDEX idx_session_state_events_session_sequence
  ON session_state_events(session_key, sequence DESC);
CREATE INDEX idx_session_state_events_time
  ON session_state_events(occurred_at DESC, sequence DESC);
CREATE INDEX idx_session_watch_cursors_target
  ON session_watch_cursors(target_session_key);
CREATE INDEX idx_session_upstream_links_catalog_id
  ON session_upstream_links(catalog_id);
CREATE INDEX idx_state_leases_expiry
  ON state_leases(expires_at, scope, lease_key)
  WHERE expires_at IS NOT NULL;
CREATE INDEX idx_state_leases_owner
  ON state_leases(owner, updated_at DESC);
CREATE INDEX idx_operator_approvals_status_expiry
  ON operator_approvals(status, expires_at_ms, approval_id);
CREATE UNIQUE INDEX idx_operator_approvals_resolution_ref
  ON operator_approvals(resolution_ref);
CREATE INDEX idx_operator_approvals_source_session_created
  ON operator_approvals(source_session_key, created_at_ms DESC, approval_id);
CREATE INDEX idx_operator_approvals_source_run_resolved
  ON operator_approvals(source_run_id, resolved_at_ms, approval_id)
  WHERE source_run_id IS NOT NULL AND resolved_at_ms IS NOT NULL;
CREATE INDEX idx_operator_approvals_resolved
  ON operator_approvals(resolved_at_ms, approval_id)
  WHERE resolved_at_ms IS NOT NULL;
CREATE INDEX idx_operator_approvals_runtime_pending
  ON operator_approvals(runtime_epoch, approval_id)
  WHERE status = 'pending';
CREATE INDEX idx_device_pairing_pending_device
  ON device_pairing_pending(device_id, ts DESC);
CREATE INDEX idx_device_pairing_paired_approved
  ON device_pairing_paired(approved_at_ms DESC, device_id);
CREATE INDEX idx_device_bootstrap_tokens_ts
  ON device_bootstrap_tokens(ts);
CREATE INDEX idx_device_identities_device
  ON device_identities(device_id, updated_at_ms DESC);
CREATE INDEX idx_device_auth_tokens_updated
  ON device_auth_tokens(updated_at_ms DESC, device_id, role);
CREATE INDEX idx_macos_port_guardian_records_port
  ON macos_port_guardian_records(port, timestamp DESC);
CREATE INDEX idx_workspace_setup_state_path
  ON workspace_setup_state(workspace_path);
CREATE INDEX idx_workspace_path_aliases_workspace
  ON workspace_path_aliases(workspace_key);
CREATE INDEX idx_native_hook_relay_bridges_expires
  ON native_hook_relay_bridges(expires_at_ms, relay_id);
CREATE INDEX idx_managed_outgoing_images_session
  ON managed_outgoing_image_records(session_key, created_at DESC, attachment_id);
CREATE INDEX idx_managed_outgoing_images_message
  ON managed_outgoing_image_records(session_key, message_id, attachment_id)
  WHERE message_id IS NOT NULL;
CREATE INDEX idx_managed_outgoing_images_agent_session
  ON managed_outgoing_image_records(session_key, agent_id, created_at DESC, attachment_id);
CREATE INDEX idx_managed_outgoing_images_agent_message
  ON managed_outgoing_image_records(session_key, agent_id, message_id, attachment_id)
  WHERE message_id IS NOT NULL;
CREATE INDEX idx_channel_pairing_requests_code
  ON channel_pairing_requests(channel_key, code);
CREATE INDEX idx_channel_pairing_requests_created
  ON channel_pairing_requests(channel_key, created_at, request_id);
CREATE INDEX idx_channel_pairing_allow_account
  ON channel_pairing_allow_entries(channel_key, account_id, sort_order, entry);
CREATE INDEX idx_web_push_subscriptions_updated
  ON web_push_subscriptions(updated_at_ms DESC, subscription_id);
CREATE INDEX idx_apns_registrations_updated
  ON apns_registrations(updated_at_ms DESC, node_id);
CREATE INDEX idx_official_external_plugin_catalog_snapshots_updated
  ON official_external_plugin_catalog_snapshots(updated_at_ms DESC, feed_url);
CREATE INDEX idx_gateway_restart_sentinel_ts
  ON gateway_restart_sentinel(ts DESC, sentinel_key);
CREATE INDEX idx_gateway_restart_handoff_expiry
  ON gateway_restart_handoff(expires_at, pid);
CREATE INDEX idx_gateway_boot_lifecycle_started
  ON gateway_boot_lifecycle(started_at_ms);
CREATE INDEX idx_acp_sessions_state_activity
  ON acp_sessions(state, last_activity_at DESC, session_key);
CREATE INDEX idx_acp_sessions_agent_activity
  ON acp_sessions(agent, last_activity_at DESC, session_key);
CREATE INDEX idx_acp_replay_sessions_key_updated
  ON acp_replay_sessions(session_key, complete, updated_at DESC, session_id);
CREATE INDEX idx_acp_replay_sessions_updated
  ON acp_replay_sessions(updated_at DESC, session_id);
CREATE INDEX idx_acp_replay_events_session_seq
  ON acp_replay_events(session_id, seq);
CREATE INDEX idx_plugin_state_expiry
  ON plugin_state_entries(expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX idx_plugin_state_listing
  ON plugin_state_entries(plugin_id, namespace, created_at, entry_key, expires_at);
CREATE INDEX idx_channel_ingress_pending
  ON channel_ingress_events(queue_name, status, received_at, event_id);
CREATE INDEX idx_channel_ingress_claims
  ON channel_ingress_events(queue_name, status, claimed_at);
CREATE INDEX idx_channel_ingress_lane
  ON channel_ingress_events(queue_name, status, lane_key);
CREATE INDEX idx_plugin_blob_expiry
  ON plugin_blob_entries(expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX idx_plugin_blob_listing
  ON plugin_blob_entries(plugin_id, namespace, created_at, entry_key);
CREATE INDEX idx_skill_uploads_expiry
  ON skill_uploads(expires_at);
CREATE INDEX idx_skill_uploads_idempotency
  ON skill_uploads(idempotency_key_hash)
  WHERE idempotency_key_hash IS NOT NULL;
CREATE INDEX capture_events_session_ts_idx
  ON capture_events(session_id, ts);
CREATE INDEX capture_events_flow_idx
  ON capture_events(flow_id, ts);
CREATE INDEX idx_sandbox_registry_updated
  ON sandbox_registry_entries(registry_kind, updated_at DESC, container_name);
CREATE INDEX idx_sandbox_registry_session
  ON sandbox_registry_entries(registry_kind, session_key, last_used_at_ms DESC, container_name)
  WHERE session_key IS NOT NULL;
CREATE INDEX idx_sandbox_registry_last_used
  ON sandbox_registry_entries(registry_kind, last_used_at_ms DESC, container_name)
  WHERE last_used_at_ms IS NOT NULL;
CREATE INDEX idx_cron_jobs_store_order
  ON cron_jobs(store_key, sort_order ASC, updated_at ASC, job_id);
CREATE UNIQUE INDEX idx_cron_run_receipts_active_job
  ON cron_run_receipts(store_key, job_id)
  WHERE status = 'running';
CREATE INDEX idx_cron_run_receipts_job_history
  ON cron_run_receipts(store_key, job_id, started_at_ms DESC, receipt_id DESC);
CREATE INDEX idx_cron_job_scratch_store_updated
  ON cron_job_scratch(store_key, updated_at_ms DESC, job_id);
CREATE INDEX idx_delivery_queue_pending
  ON delivery_queue_entries(queue_name, status, enqueued_at, id);
CREATE INDEX idx_delivery_queue_failed
  ON delivery_queue_entries(queue_name, status, failed_at, id);
CREATE INDEX idx_delivery_queue_session
  ON delivery_queue_entries(queue_name, status, session_key, enqueued_at, id)
  WHERE session_key IS NOT NULL;
CREATE INDEX idx_delivery_queue_target
  ON delivery_queue_entries(queue_name, status, channel, target, enqueued_at, id)
  WHERE channel IS NOT NULL AND target IS NOT NULL;
CREATE INDEX idx_task_runs_run_id ON task_runs(run_id);
CREATE INDEX idx_task_runs_status ON task_runs(status);
CREATE INDEX idx_task_runs_runtime_status ON task_runs(runtime, status);
CREATE INDEX idx_task_runs_cleanup_after ON task_runs(cleanup_after);
CREATE INDEX idx_task_runs_last_event_at ON task_runs(last_event_at);
CREATE INDEX idx_task_runs_owner_key ON task_runs(owner_key);
CREATE INDEX idx_task_runs_parent_flow_id ON task_runs(parent_flow_id);
CREATE INDEX idx_task_runs_child_session_key ON task_runs(child_session_key);
CREATE INDEX idx_task_runs_requester_session_key ON task_runs(requester_session_key);
CREATE INDEX idx_task_runs_runtime_source_ended
  ON task_runs(runtime, source_id, ended_at, created_at, task_id);
CREATE INDEX idx_task_runs_runtime_ended
  ON task_runs(runtime, ended_at, created_at, task_id);
CREATE INDEX idx_subagent_runs_child_session_key
  ON subagent_runs(child_session_key, created_at DESC, run_id);
CREATE INDEX idx_subagent_runs_requester_session_key
  ON subagent_runs(requester_session_key, created_at DESC, run_id);
CREATE INDEX idx_subagent_runs_controller_session_key
  ON subagent_runs(controller_session_key, created_at DESC, run_id);
CREATE INDEX idx_current_conversation_bindings_target
  ON current_conversation_bindings(target_session_key, updated_at DESC, binding_key);
CREATE INDEX idx_current_conversation_bindings_conversation
  ON current_conversation_bindings(channel, account_id, conversation_kind, conversation_id);
CREATE INDEX idx_current_conversation_bindings_expires
  ON current_conversation_bindings(expires_at, binding_key);
CREATE INDEX idx_plugin_binding_approvals_plugin
  ON plugin_binding_approvals(plugin_id, approved_at DESC);
CREATE INDEX idx_flow_runs_status ON flow_runs(status);
CREATE INDEX idx_flow_runs_owner_key ON flow_runs(owner_key);
CREATE INDEX idx_flow_runs_updated_at ON flow_runs(updated_at);
CREATE INDEX idx_meeting_transcript_sessions_started
  ON meeting_transcript_sessions(started_at DESC, session_id);
CREATE INDEX idx_meeting_transcript_sessions_id
  ON meeting_transcript_sessions(session_id, started_at DESC);
CREATE INDEX idx_meeting_transcript_sessions_slug
  ON meeting_transcript_sessions(session_slug, started_at DESC);
CREATE INDEX idx_meeting_transcript_sessions_export_key
  ON meeting_transcript_sessions(export_key);
CREATE INDEX idx_migration_runs_started
  ON migration_runs(started_at DESC, id);
CREATE INDEX idx_migration_sources_path
  ON migration_sources(source_path, migration_kind, target_table);
CREATE INDEX idx_migration_sources_run
  ON migration_sources(last_run_id, source_path);
CREATE INDEX idx_backup_runs_created
  ON backup_runs(created_at DESC, id);
CREATE INDEX idx_worktrees_repo_fingerprint
  ON worktrees(repo_fingerprint);
CREATE INDEX idx_worktrees_removed_at
  ON worktrees(removed_at);
CREATE UNIQUE INDEX idx_worker_environments_provider_lease
  ON worker_environments(provider_id, lease_id)
  WHERE lease_id IS NOT NULL;
CREATE INDEX idx_worker_environments_terminal_changed
  ON worker_environments(state_changed_at_ms, environment_id);
CREATE INDEX idx_worker_session_placements_session_key
  ON worker_session_placements(agent_id, session_key);
CREATE INDEX idx_worker_session_placements_reconcile
  ON worker_session_placements(updated_at_ms, session_id);
CREATE INDEX idx_worker_session_placements_environment
  ON worker_session_placements(environment_id)
  WHERE environment_id IS NOT NULL;
CREATE INDEX idx_github_publication_requests_pending
  ON github_publication_requests(status, updated_at_ms, request_id);
CREATE UNIQUE INDEX idx_worker_inference_turns_pending_run
  ON worker_inference_turns(session_id, run_epoch, run_id)
  WHERE state = 'pending';
CREATE INDEX secret_store_entries_live_idx
  ON secret_store_entries (scope_kind, scope_id, name) WHERE deleted_at_ms IS NULL;
CREATE INDEX worker_environment_session_attachments_session_key
ON worker_environment_session_attachments(agent_id, session_key);
CREATE INDEX idx_web_push_approval_deliveries_subscription
  ON web_push_approval_deliveries(subscription_id, approval_id);
CREATE INDEX idx_user_profile_emails_profile_id
  ON user_profile_emails(profile_id);
CREATE INDEX idx_user_profile_identities_profile_id
  ON user_profile_identities(profile_id);
