-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: stock
-- ------------------------------------------------------
/*!40101 SET NAMES utf8 */;
CREATE TABLE `item` (`id` int NOT NULL AUTO_INCREMENT);
