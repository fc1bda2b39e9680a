-- The OLTP transaction of sysbench before 1.0, for sysbench 1.0: Debian's package has no oltp_legacy/oltp.lua.
--
-- Eighteen statements between BEGIN and COMMIT, all on one table that is drawn for the transaction, each sent as text. What the
-- published descriptions of that transaction say is asked here in the same order; tables are those of oltp_read_write.

sysbench.cmdline.options = {
   tables = {"Number of tables", 1},
   table_size = {"Rows of each", 10000},
}

local POINT_SELECTS = 10
local RANGE_SIZE = 100
local C = string.rep("###########-", 9) .. "###########"
local PAD = string.rep("###########-", 4) .. "###########"

local session

function thread_init()
   session = sysbench.sql.driver():connect()
end

function thread_done()
   session:disconnect()
end

local function row()
   return sysbench.rand.default(1, sysbench.opt.table_size)
end

local function ask(form, ...)
   session:query(form:format(...))
end

local function ask_range(form, of_table)
   local first = row()
   ask(form, of_table, first, first + RANGE_SIZE - 1)
end

function event()
   local of_table = "sbtest" .. sysbench.rand.uniform(1, sysbench.opt.tables)
   ask("BEGIN")
   for _ = 1, POINT_SELECTS do
      ask("SELECT c FROM %s WHERE id=%d", of_table, row())
   end
   ask_range("SELECT c FROM %s WHERE id BETWEEN %d AND %d", of_table)
   ask_range("SELECT SUM(K) FROM %s WHERE id BETWEEN %d AND %d", of_table)
   ask_range("SELECT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c", of_table)
   ask_range("SELECT DISTINCT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c", of_table)
   ask("UPDATE %s SET k=k+1 WHERE id=%d", of_table, row())
   ask("UPDATE %s SET c='%s' WHERE id=%d", of_table, sysbench.rand.string(C), row())
   local gone = row()
   ask("DELETE FROM %s WHERE id=%d", of_table, gone)
   ask(
      "INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')",
      of_table, gone, row(), sysbench.rand.string(C), sysbench.rand.string(PAD)
   )
   ask("COMMIT")
end
